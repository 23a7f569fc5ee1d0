"""The command line of tune."""

from __future__ import annotations

import pytest

from dba3c import tune


@pytest.mark.parametrize(("words", "remedy"), [("--game=brekout", "breakout"), ("--preset=fastt", "fast")])
def test_tune_refuses_bad_input_before_any_rank_starts(
    words: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([words]) == 2
    assert remedy in capsys.readouterr().err


def test_a_time_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["--seconds=x"]) == 2
    assert "--seconds" in capsys.readouterr().err
