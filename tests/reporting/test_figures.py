"""Figures: what is drawn, and what is only said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c.reporting import figures, groups
from dba3c.reporting.groups import grouped
from tests.fakes.made_up_runs import read, row, write_run


def test_shares_are_weighted_by_time_and_add_up_to_one(tmp_path: Path) -> None:
    rows = [row(1, env_share=0.0), row(4, env_share=0.4)]  # 10 s and 30 s
    shares = figures.time_shares(groups.Group("", read(write_run(tmp_path / "run", rows))))
    assert shares[0] == pytest.approx(0.3)
    assert shares.sum() == pytest.approx(1.0)


def test_curves_have_holes_where_nothing_was_logged() -> None:
    x = np.append(np.arange(10.0), [500.0, 501.0])
    assert np.flatnonzero(np.isnan(figures.unbridged(x, x)[0])).tolist() == [10]


def test_what_did_not_happen_is_said_and_not_drawn(tmp_path: Path) -> None:
    rows = [row(n, dropped=3, skipped=0) for n in (1, 2, 3)]
    groups = grouped(read(write_run(tmp_path / "run", rows)))
    section = figures.sections(groups)[-1]
    assert [plot.name for plot in section.plots] == ["dropped"]
    assert "None here: lag, skipped updates." in section.note
    assert figures.Curves("", "steps", "dropped", total=True).of(groups[0])[0][1].tolist() == [3, 6, 9]
