"""Tables of runs: what each cell says of a run that ended, was resumed, or is under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.reporting import groups, markdown, tables
from dba3c.run_files import logs
from tests.fakes.made_up_runs import ended, read, row, write_run


def cell(run: logs.RunLog, name: str) -> str:
    head, line = tables.runs([groups.Group(run.name, [run])])
    return line[head.index(name)]


def test_a_resumed_run_is_past_its_summary(tmp_path: Path) -> None:
    rows = [row(n) for n in range(1, 7)]
    run, same = read(
        write_run(tmp_path / "resumed", rows, ended(rows[:3])), write_run(tmp_path / "over", rows, ended(rows))
    )
    assert (run.ended, same.ended) == (False, True)
    assert run.counted("steps") == 60_000
    assert run.core_hours == pytest.approx(2 * 60 / 3600)
    assert (cell(run, "state"), cell(run, "minutes"), cell(run, "ranks")) == ("unfinished", "1.0", "2")


def test_a_score_of_episodes_that_were_cut_is_not_normalised(tmp_path: Path) -> None:
    rows = [row(1)]
    cut = {"evaluation_score": -9000.0, "evaluation_games": 50, "evaluation_cut": 48}
    skiing = ("env.game=skiing",)
    run, whole = read(
        write_run(tmp_path / "cut", rows, ended(rows, **cut), skiing),
        write_run(tmp_path / "whole", rows, ended(rows, **cut | {"evaluation_cut": 0}), skiing),
    )
    assert (cell(run, "evaluation (episodes)"), cell(run, "human-normalised")) == (
        "-9,000.0 (50, 48 cut)",
        "– (48 cut)",
    )
    assert cell(whole, "human-normalised") == "63%"
    first, second = (markdown.row(1, groups.Group(one.name, [one])) for one in (run, whole))
    place = markdown.HEAD.index("human-normalised")
    assert (first[place], second[place]) == ("–", "63%")


def test_an_unfinished_run_has_no_ranks_yet(tmp_path: Path) -> None:
    (run,) = read(write_run(tmp_path / "run", [row(1)]))
    assert (cell(run, "ranks"), cell(run, "core-hours"), cell(run, "online")) == ("–", "–", "2.0")
    assert cell(run, "human-normalised") == f"{(2 - 1.7) / (30.5 - 1.7):.0%} (online)"
