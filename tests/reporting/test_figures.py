"""Figures: what is drawn, and what is only said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c.reporting import drawing, figures, groups
from dba3c.reporting.groups import grouped
from tests.fakes.made_up_runs import read, row, write_run


def test_shares_are_weighted_by_time_and_add_up_to_one(tmp_path: Path) -> None:
    rows = [row(1, env_share=0.0), row(4, env_share=0.4)]  # 10 s and 30 s
    shares = figures.time_shares(groups.Group("", read(write_run(tmp_path / "run", rows))))
    assert shares[0] == pytest.approx(0.3)
    assert shares.sum() == pytest.approx(1.0)


def test_curves_have_holes_where_nothing_was_logged() -> None:
    x = np.append(np.arange(10.0), [500.0, 501.0])
    assert np.flatnonzero(np.isnan(drawing.unbridged(x, x)[0])).tolist() == [10]


def test_what_did_not_happen_is_said_and_not_drawn(tmp_path: Path) -> None:
    rows = [row(n, dropped=3, skipped=0) for n in (1, 2, 3)]
    groups = grouped(read(write_run(tmp_path / "run", rows)))
    section = figures.details(groups)[-1]
    assert [plot.name for plot in section.plots] == ["dropped"]
    assert "None here: lag, skipped updates." in section.note
    assert figures.line(groups[0], 0, "steps", "dropped")[1].tolist() == [3, 6, 9]


def drawn(tmp_path: Path, name: str, *rows: dict[str, float]) -> str:
    run = write_run(tmp_path / "run", list(rows))
    sections = figures.overview(grouped(read(run))) + figures.details(grouped(read(run)))
    return drawing.svg(next(plot for section in sections for plot in section.plots if plot.name == name))


def test_every_kind_of_line_is_explained(tmp_path: Path) -> None:
    rows = [row(n, online_score=40.0 * n, evaluation_score=50.0 * n, evaluation_games=50) for n in (1, 2, 3, 4)]
    picture = drawn(tmp_path, "breakout-minutes", *rows[:2], rows[2] | {"resumed": 1}, rows[3])
    for words in (">evaluation<", ">target: 300<", ">human tester: 30.5<", ">resumed<", ">run<"):
        assert picture.count(words) == 1, words


def test_the_walk_of_self_tuning_is_drawn_where_there_is_one(tmp_path: Path) -> None:
    rows = [row(n, agents=n, predictors=1, trainers=2) for n in (1, 2, 3)]
    tuned = write_run(tmp_path / "tuned", rows, overrides=("actor.self_tuning=true",), preset="ga3c")
    fixed = write_run(tmp_path / "fixed", rows, preset="ga3c")
    sections = figures.details(grouped(read(tuned)))
    picture = drawing.svg(next(plot for section in sections for plot in section.plots if plot.name == "self-tuning"))
    for name in ("agents", "predictors", "trainers"):
        assert picture.count(f">{name}<") == 1
    assert "Self-tuning" not in [section.title for section in figures.details(grouped(read(fixed)))]


def test_a_line_far_above_the_curves_is_left_out(tmp_path: Path) -> None:
    assert "target" not in drawn(tmp_path, "breakout-steps", row(1), row(2))  # scores up to 4, the target is 300


def test_every_figure_of_the_loss_is_drawn(tmp_path: Path) -> None:
    rows = [row(n, entropy=1.0, surprise=0.5) for n in (1, 2)]
    names = [plot.name for plot in figures.details(grouped(read(write_run(tmp_path / "run", rows))))[0].plots]
    assert names == ["loss-entropy", "loss-surprise"]


def test_a_column_cannot_choose_where_its_picture_is_written(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(1, surprise=0.5), row(2, surprise=0.5)])
    file = run / "metrics.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("surprise", "../../escaped"), encoding="utf-8")
    assert figures.details(grouped(read(run)))[0].plots == []


def test_colours_are_those_of_the_page(tmp_path: Path) -> None:
    picture = drawn(tmp_path, "pace", row(1), row(20))
    assert "var(--ink)" in picture
    assert drawing.INK not in picture
    assert b"prefers-color-scheme:dark" in drawing.alone(picture)
