"""n-step returns: the sum formula, values worked by hand, and cases that reduce to something known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dba3c.learning.returns import n_step_returns
from dba3c.types import Array

GAMMA = 0.99


def sum_formula(rewards: Array, discounts: Array, bootstrap: Array) -> Array:
    """R_t = Σ_k (d_t ⋯ d_{k-1})·r_k + (d_t ⋯ d_{T-1})·bootstrap, term by term and without any recursion."""
    steps, columns = rewards.shape
    returns = np.zeros((steps, columns), np.float64)
    for b in range(columns):
        for t in range(steps):
            terms = [math.prod(float(d) for d in discounts[t:k, b]) * float(rewards[k, b]) for k in range(t, steps)]
            terms.append(math.prod(float(d) for d in discounts[t:, b]) * float(bootstrap[b]))
            returns[t, b] = math.fsum(terms)
    return returns


def play(steps: int, columns: int, seed: int, termination: float = 0.2) -> tuple[Array, Array, Array]:
    """Random rewards, discounts with terminations among them, and bootstraps."""
    random = np.random.default_rng(seed)
    rewards = random.normal(size=(steps, columns)).astype(np.float32)
    discounts = np.where(random.random((steps, columns)) < termination, 0.0, GAMMA).astype(np.float32)
    return rewards, discounts, random.normal(size=columns).astype(np.float32)


@pytest.mark.parametrize(("steps", "columns"), [(1, 1), (1, 7), (5, 1), (5, 10), (20, 3)])
def test_equals_the_sum_formula(steps: int, columns: int) -> None:
    for seed in range(5):
        segment = play(steps, columns, seed)
        np.testing.assert_allclose(n_step_returns(*segment), sum_formula(*segment), rtol=1e-5, atol=1e-6)


def test_discounts_of_every_step_count_where_they_stand() -> None:
    """Different discounts at each step, so that one taken from a neighbouring step shows."""
    random = np.random.default_rng(0)
    rewards, discounts = random.normal(size=(6, 4)), random.uniform(0.1, 1.0, size=(6, 4))
    bootstrap = random.normal(size=4)
    np.testing.assert_allclose(
        n_step_returns(rewards, discounts, bootstrap), sum_formula(rewards, discounts, bootstrap), rtol=1e-12
    )


def test_worked_by_hand() -> None:
    rewards = np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]])
    discounts = np.array([[0.5, 0.5], [0.5, 0.0], [0.5, 0.5]])
    bootstrap = np.array([8.0, 4.0])
    # Column 0: 2 + 8/2 = 6; 0 + 6/2 = 3; 1 + 3/2 = 2.5.  Column 1: 1 + 4/2 = 3; -1, the episode ended; 0 - 1/2 = -0.5.
    np.testing.assert_array_equal(n_step_returns(rewards, discounts, bootstrap), [[2.5, -0.5], [3.0, -1.0], [6.0, 3.0]])


def test_discount_zero_everywhere_leaves_the_rewards() -> None:
    rewards, _, bootstrap = play(5, 4, seed=1)
    np.testing.assert_array_equal(n_step_returns(rewards, np.zeros_like(rewards), bootstrap), rewards)


def test_discount_one_sums_up() -> None:
    rewards, _, bootstrap = play(5, 4, seed=2)
    expected = np.cumsum(rewards[::-1].astype(np.float64), axis=0)[::-1] + bootstrap
    np.testing.assert_allclose(
        n_step_returns(rewards, np.ones_like(rewards), bootstrap), expected, rtol=1e-5, atol=1e-6
    )


def test_one_step_is_the_one_step_target() -> None:
    rewards, discounts, bootstrap = play(1, 6, seed=3, termination=0.5)
    assert 0 < np.count_nonzero(discounts) < 6  # both kinds are there
    np.testing.assert_array_equal(n_step_returns(rewards, discounts, bootstrap), rewards + discounts * bootstrap)


def test_no_step_gives_no_return() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert n_step_returns(empty, empty, np.ones(3, np.float32)).shape == (0, 3)


@pytest.mark.parametrize("end", range(5))
def test_nothing_leaks_through_a_termination(end: int) -> None:
    """What comes after step `end` changes neither it nor the steps before it, bit for bit, however large it is."""
    rewards, discounts, bootstrap = play(5, 3, seed=4, termination=0.0)
    discounts[end] = 0.0
    before = n_step_returns(rewards, discounts, bootstrap)
    later = rewards.copy()
    later[end + 1 :] += 1e20
    after = n_step_returns(later, discounts, bootstrap + np.float32(1e20))
    np.testing.assert_array_equal(after[: end + 1], before[: end + 1])
    assert (after[end + 1 :] != before[end + 1 :]).all()


def test_columns_do_not_mix() -> None:
    rewards, discounts, bootstrap = play(5, 6, seed=5)
    together = n_step_returns(rewards, discounts, bootstrap)
    for b in range(6):
        alone = n_step_returns(rewards[:, b : b + 1], discounts[:, b : b + 1], bootstrap[b : b + 1])
        np.testing.assert_array_equal(alone[:, 0], together[:, b])


def test_float32_stays_and_arguments_are_left_alone() -> None:
    segment = play(5, 4, seed=6)
    copies = [array.copy() for array in segment]
    assert n_step_returns(*segment).dtype == np.float32
    for array, copy in zip(segment, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("rewards", "discounts", "bootstrap"),
    [
        ((5, 3), (4, 3), (3,)),
        ((5, 3), (5, 2), (3,)),
        ((5, 3), (5, 1), (3,)),  # would broadcast
        ((5, 3), (5, 3), (1,)),  # would broadcast
        ((5, 3), (5, 3), ()),  # would broadcast
        ((5, 3), (5, 3), (5, 3)),
        ((5, 3), (5, 3), (2,)),
        ((5,), (5,), (1,)),  # a missing batch axis
    ],
)
def test_returns_of_shapes_that_do_not_fit_are_refused(
    rewards: tuple[int, ...], discounts: tuple[int, ...], bootstrap: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="shapes do not fit") as refusal:
        n_step_returns(np.zeros(rewards), np.zeros(discounts), np.zeros(bootstrap))
    assert all(str(shape) in str(refusal.value) for shape in (rewards, discounts, bootstrap))
