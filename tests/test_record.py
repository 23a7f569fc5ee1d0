"""record: what it refuses, in one line."""

from __future__ import annotations

import pytest

from dba3c import record


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out=avi", "nowhere"], "films are .mp4 or .gif"),
        (["--out=no/such/film.gif", "nowhere"], "there is no folder no/such"),
        (["nowhere"], "nowhere: holds no checkpoint"),
        (["nowhere", "--games=0"], "--games=0"),
        (["nowhere", "--seconds=-1"], "--seconds=-1"),
        ([], "either a run directory or --pretrained GAME"),
        (["--pretrained=pong", "runs/pong"], "either a run directory or --pretrained GAME"),
    ],
)
def test_record_refuses_bad_input_in_one_line_with_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("dba3c: ")
    assert error.count("\n") == 1
    assert message in error
