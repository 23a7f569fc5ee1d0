"""Runs that differ only in their seed belong together: names, differences, and bands over their curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dba3c.reporting import groups
from dba3c.reporting.groups import differing, grouped
from tests.fakes.made_up_runs import read, row, write_run


def test_runs_that_differ_only_in_the_seed_are_one_group(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"s{seed}", [row(1)], overrides=(f"train.seed={seed}",)) for seed in (0, 1, 2)]
    other = write_run(tmp_path / "other", [row(1)], overrides=("train.seed=1", "optimizer.learning_rate=0.01"))
    groups = grouped(read(paths[0], other, *paths[1:]))
    assert [group.seeds for group in groups] == [[0, 1, 2], [1]]
    assert [group.name for group in groups] == ["s (3 runs)", "other"]
    assert differing(groups) == {"optimizer.learning_rate": [0.0007, 0.01]}


def test_groups_whose_short_names_are_the_same_have_long_ones(tmp_path: Path) -> None:
    runs = [("s0", 0, 0.1), ("s1", 1, 0.1), ("s2", 0, 0.2), ("s3", 1, 0.2)]
    overrides = {name: (f"train.seed={seed}", f"optimizer.learning_rate={rate}") for name, seed, rate in runs}
    groups = grouped(read(*(write_run(tmp_path / name, [row(1)], overrides=o) for name, o in overrides.items())))
    assert [group.name for group in groups] == ["s0 … s1 (2 runs)", "s2 … s3 (2 runs)"]


def test_a_group_whose_runs_have_nothing_in_common_has_a_long_name(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, [row(1)]) for name in ("first", "second"))
    (group,) = grouped(read(first, second))
    assert group.name == "first … second (2 runs)"


def test_a_curve_passes_over_empty_cells(tmp_path: Path) -> None:
    (run,) = read(write_run(tmp_path / "run", [row(1), row(2, evaluation_score=7.5), row(3)]))
    x, y = groups.curve(run, "minutes", "evaluation_score")
    assert (x.tolist(), y.tolist()) == ([20 / 60], [7.5])


def test_a_band_is_mean_least_and_greatest_where_all_runs_have_been() -> None:
    one = np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0])
    two = np.array([5.0, 15.0]), np.array([25.0, 35.0])
    band = groups.band([one, two], points=3)
    assert band is not None
    assert band.x.tolist() == [5.0, 10.0, 15.0]
    assert (band.low.tolist(), band.high.tolist()) == ([5.0, 10.0, 15.0], [25.0, 30.0, 35.0])
    assert band.mean.tolist() == [15.0, 20.0, 25.0]
    assert groups.band([one, (np.zeros(0), np.zeros(0))]) is None


def test_pace_does_not_follow_the_segments(tmp_path: Path) -> None:
    """Rows of 10 s between which PPO has played two segments, none, two, none, …"""
    rows = [row(n) | {"steps": 20_000 * (n // 2)} for n in range(1, 31)]
    (run,) = read(write_run(tmp_path / "run", rows))
    minutes, paces = groups.pace_curve(run)
    assert minutes[-1] >= 4
    assert paces.min() > 800
    assert paces.max() < 1200


def test_a_row_says_where_a_run_was_resumed(tmp_path: Path) -> None:
    (run,) = read(write_run(tmp_path / "run", [row(1), row(2, resumed=1), row(3)]))
    assert groups.resumes(run, "steps") == [20_000]
