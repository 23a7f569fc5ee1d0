"""Evaluations by other rules: which files count, and how they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dba3c.reporting import protocols
from dba3c.reporting.groups import grouped
from dba3c.run_files import logs
from tests.fakes.made_up_runs import ended, row, write_run


def played(folder: Path, name: str, **facts: object) -> None:
    content = {"updates": 100, "policy": "greedy", "sticky": 0.0, "evaluation_score": 12.0, "games": 50, "cut": 0}
    (folder / f"evaluation-{name}.json").write_text(json.dumps(content | facts), encoding="utf-8")


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    rows = [row(1, online_score=7.25, evaluation_score=20.0, evaluation_games=50)]
    paths = []
    for seed in (0, 1):
        last = [rows[0] | {"evaluation_score": 20.0 + seed}]
        overrides = (f"train.seed={seed}", "env.game=pong", "evaluate.in_a_row=2")
        paths.append(write_run(tmp_path / f"pong-{seed}", last, ended(last, target_reached=True), overrides))
    return paths


def test_a_row_has_every_rule(runs: list[Path]) -> None:
    played(runs[0], "greedy")
    played(runs[0], "any-name", policy="sampled", evaluation_score=11.5)
    played(runs[1], "sticky", sticky=0.25, evaluation_score=-3.0, games=10)
    (group,) = grouped(logs.read(runs))
    cells = dict(zip(protocols.HEAD, protocols.row(3, group), strict=True))
    assert cells == {
        "row": "3.",
        "game": "pong",
        "ended by": "2 in a row",
        "last evaluation": "20.0, 21.0",
        "interquartile mean (95 %)": "20.5 (20.0 to 21.0)",
        "greedy": "12.0 (50)",
        "sampled": "11.5 (50)",
        "sticky 0.25": "-3.0 (10)",
        "online": "7.2, 7.2",
    }


@pytest.mark.parametrize(
    "facts", [{"updates": 99}, {"policy": "epsilon"}, {"sticky": 0.5}, {"evaluation_score": "high"}, {"games": None}]
)
def test_what_is_of_other_weights_or_rules_or_damaged_does_not_count(
    runs: list[Path], facts: dict[str, object]
) -> None:
    played(runs[0], "greedy", **facts)
    assert protocols.evaluations(logs.read(runs[:1])[0]) == {}


def test_small_copies_of_logs_keep_the_evaluations(runs: list[Path], tmp_path: Path) -> None:
    played(runs[0], "greedy")
    (run,) = logs.read(runs[:1])
    copy = logs.export_logs(runs[0], run, tmp_path / "logs")
    assert protocols.evaluations(logs.read([copy])[0]) == protocols.evaluations(run) != {}


def test_games_with_as_many_seeds_are_normalised_and_taken_together(runs: list[Path], tmp_path: Path) -> None:
    for seed in (0, 1):
        last = [row(1, evaluation_score=30.5 + seed, evaluation_games=50)]
        runs.append(write_run(tmp_path / f"breakout-{seed}", last, ended(last), (f"train.seed={seed}",)))
    pong, breakout = grouped(logs.read(runs))
    shares = [(score + 20.7) / (14.6 + 20.7) for score in (20.0, 21.0)]
    assert protocols.normalised(pong) == pytest.approx(shares)
    text = protocols.section([(1, pong), (2, breakout)], "table")
    middle = (32.5 - 2.7) / 28.8 / 2 + shares[0] / 2  # of 100 %, 103.5 %, 115.3 %, 118.1 %
    assert f"of 2 games × 2 seeds, by their last evaluation:\n**{middle:.0%}**" in text
    assert "games ×" not in protocols.section([(1, pong), (2, breakout._replace(runs=breakout.runs[:1]))], "table")


def test_a_run_ends_by_its_target_or_its_steps_or_somebody_stops_it(runs: list[Path]) -> None:
    (group,) = grouped(logs.read(runs))
    summary = group.runs[1].summary
    assert protocols.rule(group) == "2 in a row"
    summary["target_reached"] = False
    assert protocols.rule(group) == "2 in a row or stopped"
    summary["steps"] = group.config.train.total_steps
    assert protocols.rule(group) == "2 in a row or steps"
