"""sweep: what it refuses and what it prints, without training anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c import sweep


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs=0"], "--jobs=0: must be a number from 1"),
        (["--nice=20"], "--nice=20: must be a number from 0 to 19"),
        ([], "no/such.yaml: cannot be read: No such file"),
    ],
)
def test_bad_input_is_refused_in_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main(["no/such.yaml", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dba3c: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_dry_run_prints_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("games: [pong, catch]", encoding="utf-8")
    assert sweep.main([str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dba3c train --preset auto --run-dir runs/two/pong-0 --train.seed=0 --env.game=pong",
        "dba3c train --preset auto --run-dir runs/two/catch-0 --train.seed=0 --env.game=catch",
    ]
