"""Normalisation: totals against NumPy's own, increments of many ranks, what is frozen, saved and refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from dba3c.config.messages import ConfigError
from dba3c.networks.normalisation import MOST, Normaliser, RunningMoments, normaliser_for
from dba3c.types import Array
from tests.fakes.batches import batch_of, spaces
from tests.fakes.settings import settings

NUMBERS = 3


def seen(seed: int, count: int = 40) -> Array:
    """Numbers far from 0 and of very different size."""
    random = np.random.default_rng(seed)
    return np.asarray(random.normal(size=(count, NUMBERS)) * [0.1, 1, 300] + [5, -1, 1000], np.float32)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_moments_are_those_of_everything_seen_by_any_rank(ranks: int) -> None:
    moments = RunningMoments(NUMBERS)
    rounds = [[seen(10 * number + rank) for rank in range(ranks)] for number in range(5)]
    for parts in rounds:
        moments.add(np.sum([moments.increment(part) for part in parts], axis=0, dtype=np.float32))
    every = np.concatenate([part for parts in rounds for part in parts]).astype(np.float64)
    assert moments.count == len(every)
    np.testing.assert_allclose(moments.mean, every.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.deviation, every.std(axis=0), rtol=1e-3)


def test_nothing_and_what_is_not_finite_change_nothing() -> None:
    moments = RunningMoments(NUMBERS)
    moments.add(moments.increment(seen(0)))
    before = moments.state()
    moments.add(np.zeros(1 + 2 * NUMBERS, np.float32))
    moments.add(np.full(1 + 2 * NUMBERS, np.inf, np.float32))
    assert all(np.array_equal(before[name], value) for name, value in moments.state().items())


def learned(*, rewards: bool = True) -> Normaliser:
    """A normaliser that has seen one batch, of 40 steps."""
    normaliser = Normaliser(NUMBERS, rewards)
    observations = np.concatenate([seen(0), seen(1, 1)])[:, np.newaxis]
    returns = np.linspace(-4, 4, 40, dtype=np.float32)[:, np.newaxis]
    batch = batch_of(40, 1, observations=observations, past_returns=returns)
    normaliser.follow(normaliser.increments(batch))
    return normaliser


def test_observations_are_standardised_and_clipped() -> None:
    shown = learned().normalised(tf.constant(seen(0))).numpy()
    np.testing.assert_allclose(shown.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(shown.std(axis=0), 1, rtol=1e-3)
    far = learned().normalised(tf.constant([[1e6, -1e6, 1000.0]])).numpy()
    assert far[0, :2].tolist() == [MOST, -MOST]


def test_rewards_are_scaled_by_the_spread_of_their_discounted_sums() -> None:
    assert learned().reward_scale == pytest.approx(1 / np.linspace(-4, 4, 40).std(), rel=1e-5)
    assert learned(rewards=False).reward_scale == 1.0


def test_statistics_are_restored() -> None:
    normaliser, again = learned(), Normaliser(NUMBERS, True)
    assert all(array.dtype == np.float64 for array in normaliser.state().values())
    again.restore(normaliser.state())
    assert again.reward_scale == normaliser.reward_scale
    np.testing.assert_array_equal(*(each.normalised(tf.constant(seen(5))) for each in (normaliser, again)))


def test_statistics_of_another_agent_are_refused() -> None:
    for other in (Normaliser(NUMBERS + 1, True), Normaliser(NUMBERS), Normaliser()):
        with pytest.raises(ConfigError, match="statistics do not fit"):
            other.restore(learned().state())


def test_without_the_options_nothing_changes_and_nothing_is_saved() -> None:
    normaliser, observations = Normaliser(), tf.constant(seen(0))
    assert normaliser.normalised(observations) is observations
    assert normaliser.increments(batch_of(2, 1)).size == 0
    assert normaliser.state() == {}
    normaliser.follow(np.empty(0, np.float32))


def test_pictures_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^env\.normalise_observations=true: .*pictures; set it to false.*torso=nips"
    ):
        normaliser_for(settings("env.normalise_observations=true").env, spaces())
