"""The simulation of ranks against cases that can be worked by hand, and one real measurement of stragglers."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.benchmarks import emulated_ranks
from dba3c.benchmarks.emulated_ranks import STEPS, Pattern

MESSAGE = 0.01


def simulate(ranks: int, n_backup: int, pattern: Pattern, updates: int = 2000) -> float:
    return emulated_ranks.simulate(ranks, n_backup, pattern.segments(ranks), MESSAGE, updates)


def test_equal_ranks_take_their_time_and_that_of_the_message() -> None:
    assert simulate(4, 0, Pattern(0.1)) == pytest.approx(1 / 0.11)
    assert simulate(4, 1, Pattern(0.1)) == pytest.approx(1 / 0.11)


def test_a_slow_rank_sets_the_pace_unless_it_is_a_backup() -> None:
    slow = Pattern(0.1, slow_rank=2, factor=3.0)
    assert simulate(4, 0, slow) == pytest.approx(1 / 0.31)
    assert simulate(4, 1, slow) == pytest.approx(1 / 0.11)


def test_delays_of_one_rank_average_out() -> None:
    """Alone, a step takes 0.9 + 0.1 · 5 = 1.4 times as long on average."""
    pace = simulate(1, 0, Pattern(0.1, delayed=0.1, delay=5.0), updates=20_000)
    assert pace == pytest.approx(1 / (0.14 + MESSAGE), rel=0.02)


def test_the_slowest_of_many_sets_the_pace() -> None:
    """With two ranks: the mean of the larger of two sums of STEPS steps, by drawing them."""
    random, pattern = np.random.default_rng(1), Pattern(0.1, delayed=0.1, delay=5.0)
    sums = pattern.steps(0, random, 2 * STEPS * 50_000).reshape(50_000, 2, STEPS).sum(axis=2)
    expected = 1 / (sums.max(axis=1).mean() + MESSAGE)
    assert simulate(2, 0, pattern, updates=20_000) == pytest.approx(expected, rel=0.02)


def test_more_backups_are_faster() -> None:
    pattern = Pattern(0.1, delayed=0.1, delay=5.0)
    paces = [simulate(8, n_backup, pattern) for n_backup in (0, 1, 2)]
    assert paces[0] < paces[1] < paces[2]
