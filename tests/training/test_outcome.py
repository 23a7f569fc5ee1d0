"""What a run says when it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_OK, EXIT_STOPPED
from dba3c.run_files.progress import Progress
from dba3c.training import outcome
from tests.fakes.settings import settings

WHO = {"stop": "rank 2 on c", "not_finite": "rank 1 on b", "save": "rank 0 on a"}


def last_line(code: int, *overrides: str, **progress: object) -> str:
    found = Progress(updates=1200, steps=96000, **progress)  # type: ignore[arg-type]
    return outcome.last_line(code, settings(*overrides), found, Path("runs/x"), WHO)


def test_the_last_line_says_why_where_and_what_to_do() -> None:
    assert last_line(EXIT_OK) == "done after 1,200 updates, 96,000 steps; results in runs/x"
    assert last_line(EXIT_STOPPED) == (
        "stopped by a signal to rank 2 on c after 1,200 updates, 96,000 steps; saved in runs/x;"
        " rerun the same command to resume"
    )
    assert last_line(EXIT_NOT_FINITE, bad_in_a_row=5) == (
        "gave up after 1,200 updates, 96,000 steps: gradients of rank 1 on b were not finite in 5 updates in a row;"
        " the last good weights are saved in runs/x"
    )
    assert last_line(EXIT_NOT_SAVED) == (
        "rank 0 on a could not save the final state, after 1,200 updates, 96,000 steps:"
        " updates after the last save in runs/x are lost"
    )


def test_a_run_that_resumes_exactly_points_to_its_last_regular_save() -> None:
    assert "the last regular save is in runs/x;" in last_line(EXIT_STOPPED, "checkpoint.restart_games=true")


def test_a_target_that_was_reached_is_named() -> None:
    line = last_line(EXIT_OK, "train.target_score=20", target_reached=True)
    assert line.startswith("target score 20.0 reached after 1,200 updates")


def test_a_time_limit_that_was_reached_is_named() -> None:
    assert last_line(EXIT_OK, "train.max_minutes=2", seconds=120.0).startswith("time limit of 2 minutes reached after")
    assert last_line(EXIT_OK, "train.max_minutes=2", seconds=119.0).startswith("done after")


@pytest.mark.parametrize(
    ("content", "written"),
    [('{"updates": 1200}', True), ('{"updates": 1100}', False), ("[]", False), ("half a fi", False), (None, False)],
)
def test_only_the_summary_of_this_very_end_counts(tmp_path: Path, content: str | None, written: bool) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    assert outcome.was_written(tmp_path, Progress(updates=1200)) is written
    (tmp_path / "summary.json").write_text(json.dumps({"updates": 1200}), encoding="utf-8")
    assert outcome.was_written(tmp_path, Progress(updates=1200))
