"""Interquartile means and bootstrap intervals against values worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dba3c.reporting.statistics import bootstrap, interquartile_mean


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([8, 1, 3, 2, 5, 4, 7, 6], 4.5),  # of 3, 4, 5, 6
        ([100, 1, 2, 3], 2.5),
        ([9, 1, 2, 3, 1000], 14 / 3),  # a quarter of five, rounded down, is one
        ([1, 2, 9], 4.0),  # nothing to leave out
        ([7], 7.0),
    ],
)
def test_the_middle_half_counts(scores: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(scores)) == pytest.approx(expected)


def test_rows_are_judged_one_by_one() -> None:
    rows = np.array([[4.0, 1.0, 9.0, 2.0], [0.0, 0.0, 8.0, 8.0]])
    np.testing.assert_allclose(interquartile_mean(rows, axis=1), [3.0, 4.0])


def test_the_interval_is_that_of_all_ways_to_draw_again() -> None:
    """27 equally likely triples of 0, 1 and 5, whose interquartile mean is their mean."""
    means = np.sort([np.mean(drawn) for drawn in product([0.0, 1.0, 5.0], repeat=3)])
    found = bootstrap([[0.0, 1.0, 5.0]])
    assert found.estimate == 2.0
    assert found.low == pytest.approx(means[0])  # 1 of 27 is more than 2.5 %
    assert found.high == pytest.approx(means[-1])


def test_each_game_is_drawn_from_by_itself() -> None:
    """Two games whose seeds agree have no spread, although the games differ: one bootstrap of all would have one."""
    assert bootstrap([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]) == (0.5, 0.5, 0.5)
    low_game, high_game = [0.0, 2.0], [10.0, 12.0]
    found = bootstrap([low_game, high_game])
    # Of the four scores the lowest and the highest are left out. 0, 0, 10, 10 and 2, 2, 12, 12 have probability 1/16.
    assert (found.estimate, found.low, found.high) == (6.0, 5.0, 7.0)


def test_the_same_scores_give_the_same_interval() -> None:
    scores = [[1.0, 4.0, 2.0, 8.0, 5.0], [7.0, 1.0, 3.0]]
    assert bootstrap(scores) == bootstrap(scores)
