"""PPO: advantages and loss against their formulas worked term by term, and how a rollout is cut into minibatches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from dba3c.learning.ppo import PPO
from dba3c.learning.returns import generalised_advantages, n_step_returns
from dba3c.seeds import time_order
from dba3c.types import Array, Clock, Update
from tests.fakes.batches import batch_of, spaces
from tests.fakes.settings import settings

TINY, CLIP = 1e-6, 0.1


def algorithm(*overrides: str) -> PPO:
    return PPO(settings(f"algorithm.ratio_clip={CLIP}", *overrides).algorithm, spaces())


def play(steps: int, columns: int, seed: int) -> tuple[Array, Array, Array]:
    """Rewards, discounts of different sizes with terminations among them, and values."""
    random = np.random.default_rng(seed)
    discounts = np.where(random.random((steps, columns)) < 0.2, 0.0, random.uniform(0.5, 1.0, (steps, columns)))
    return random.normal(size=(steps, columns)), discounts, random.normal(size=(steps + 1, columns))


def advantage_sum(rewards: Array, discounts: Array, values: Array, smoothing: float) -> Array:
    """A_t = Σ_k λ^(k−t)·(d_t ⋯ d_{k−1})·δ_k, term by term and without any recursion."""
    steps, columns = rewards.shape
    result = np.zeros((steps, columns))
    for b in range(columns):
        for t in range(steps):
            result[t, b] = math.fsum(
                smoothing ** (k - t)
                * math.prod(discounts[t:k, b])
                * (rewards[k, b] + discounts[k, b] * values[k + 1, b] - values[k, b])
                for k in range(t, steps)
            )
    return result


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize(("steps", "columns"), [(1, 1), (7, 3), (20, 2)])
def test_advantages_equal_the_sum_formula(steps: int, columns: int, smoothing: float) -> None:
    segment = play(steps, columns, seed=steps)
    np.testing.assert_allclose(
        generalised_advantages(*segment, smoothing), advantage_sum(*segment, smoothing), rtol=1e-10, atol=1e-12
    )


def test_without_smoothing_they_are_the_n_step_returns_less_the_values() -> None:
    rewards, discounts, values = play(9, 4, seed=1)
    expected = n_step_returns(rewards, discounts, values[-1]) - values[:-1]
    np.testing.assert_allclose(generalised_advantages(rewards, discounts, values, 1.0), expected, rtol=1e-10)


def test_by_hand() -> None:
    """Two steps, γ = 0.5, λ = 0.5: δ = 1 + 0.5·2 − 4 = −2 and 3 + 0.5·6 − 2 = 4; A = −2 + 0.25·4 = −1 and 4."""
    rewards, discounts, values = np.array([[1.0], [3.0]]), np.full((2, 1), 0.5), np.array([[4.0], [2.0], [6.0]])
    assert generalised_advantages(rewards, discounts, values, 0.5).tolist() == [[-1.0], [4.0]]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="values"):
        generalised_advantages(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)), 0.9)


def softmax(logits: Array) -> list[float]:
    powers = [math.exp(float(z) - float(max(logits))) for z in logits]
    return [power / math.fsum(powers) for power in powers]


def slow_loss(logits: Array, values: Array, actions: Array, returns: Array, advantages: Array, old: Array) -> float:
    """The formula, sample by sample."""
    total = 0.0
    for z, v, a, r, advantage, before in zip(logits, values, actions, returns, advantages, old, strict=True):
        policy = softmax(z)
        ratio = math.exp(math.log(policy[a] + TINY) - before)
        clipped = min(max(ratio, 1 - CLIP), 1 + CLIP)
        entropy = -math.fsum(p * math.log(p + TINY) for p in policy)
        total += -min(ratio * advantage, clipped * advantage) + 0.5 * (r - v) ** 2 - 0.01 * entropy
    return total / len(logits)


def loss_of(
    ppo: PPO,
    logits: tf.Tensor,
    values: tf.Tensor,
    actions: tf.Tensor,
    returns: tf.Tensor,
    advantages: tf.Tensor,
    old: tf.Tensor,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    outputs = {"policy": logits, "value": tf.expand_dims(values, 1)}
    return ppo.loss(outputs, actions=actions, returns=returns, advantages=advantages, old_log_probabilities=old)


def samples(seed: int, batch: int = 12, n_actions: int = 4) -> list[Array]:
    """Old probabilities such that ratios lie below, inside and above the clip, with advantages of both signs."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(batch, n_actions)).astype(np.float32)
    actions = random.integers(n_actions, size=batch).astype(np.int32)
    now = np.array([math.log(softmax(z)[a] + TINY) for z, a in zip(logits, actions, strict=True)])
    old = (now + np.tile([0.0, 0.5, -0.5, 0.05], batch // 4)).astype(np.float32)
    vectors = [random.normal(size=batch).astype(np.float32) for _ in range(3)]
    values, returns, advantages = vectors
    return [logits, values, actions, returns, advantages, old]


@pytest.mark.parametrize("seed", range(5))
def test_loss_equals_the_formula(seed: int) -> None:
    inputs = samples(seed)
    loss, figures = loss_of(algorithm(), *map(tf.constant, inputs))
    assert float(loss) == pytest.approx(slow_loss(*inputs), rel=1e-4)
    assert float(figures["advantage_square"]) == pytest.approx(float(np.mean(np.square(inputs[4]))), rel=1e-5)


@pytest.mark.parametrize(
    ("shift", "advantage", "moves"),
    [(-0.5, 1.0, False), (-0.5, -1.0, True), (0.5, 1.0, True), (0.5, -1.0, False), (0.0, 1.0, True)],
)
def test_nothing_pulls_the_policy_further_once_it_has_moved_enough(shift: float, advantage: float, moves: bool) -> None:
    """Old log-probability = new + shift: at −0.5 the action became likelier; a good advantage wants no more of it."""
    logits = tf.Variable([[0.3, -0.2]])
    old = math.log(softmax(np.array([0.3, -0.2]))[0]) + shift
    with tf.GradientTape() as tape:
        inputs = [np.zeros(1), [0], np.zeros(1), [advantage], [old]]
        dtypes = [np.float32, np.int32, np.float32, np.float32, np.float32]
        rest = [tf.constant(np.asarray(x, d)) for x, d in zip(inputs, dtypes, strict=True)]
        loss, _ = loss_of(algorithm("algorithm.entropy=0"), logits, *rest)
    assert bool(np.abs(tape.gradient(loss, logits).numpy()).max() > 1e-4) == moves


def after_updates(ppo: PPO, squares: list[float]) -> PPO:
    """After updates whose scaled advantages had these mean squares."""
    for number, square in enumerate(squares, 1):
        ppo.follow(update(number, square), Clock(number, 0, 1), tf.Variable(0.0))
    return ppo


def update(number: int, square: float, skipped: bool = False) -> Update:
    return Update(number, 50, 50, skipped, False, {"advantage_square": square * 50}, {})


def columns_of(ppo: PPO, *play_of: Array) -> dict[str, Array]:
    rewards, discounts, values = play_of
    batch = batch_of(4, 2, rewards=rewards, discounts=discounts, values=values)
    batch.log_probabilities[:] = -1
    return ppo.columns(batch, Clock(0, 0, 1), lambda *_: {})


def test_columns() -> None:
    rewards, discounts, values = (array.astype(np.float32) for array in play(4, 2, seed=3))
    columns = columns_of(algorithm("algorithm.gae_lambda=0.9"), rewards, discounts, values)
    expected = advantage_sum(rewards, discounts, values, 0.9)
    np.testing.assert_allclose(columns["advantages"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(columns["returns"], expected + values[:-1], rtol=1e-5, atol=1e-6)
    assert (columns["old_log_probabilities"] == -1).all()
    assert all(column.dtype == np.float32 for name, column in columns.items() if name != "actions")
    assert columns["actions"].shape == (4, 2)
    assert columns["actions"].dtype == np.int32


def test_advantages_are_divided_by_their_scale_and_returns_are_not() -> None:
    segment = [array.astype(np.float32) for array in play(4, 2, seed=3)]
    before = columns_of(algorithm(), *segment)
    after = columns_of(after_updates(algorithm(), [3.0]), *segment)  # the scale moves by 0.5 % of 3 − 1
    np.testing.assert_allclose(after["advantages"], before["advantages"] / 1.01, rtol=1e-6)
    np.testing.assert_array_equal(after["returns"], before["returns"])


def test_each_pass_takes_every_step_once_in_an_order_of_its_own() -> None:
    parts = list(algorithm("actor.n_steps=32", "algorithm.passes=3", "algorithm.minibatches=4").minibatches(32, 7, 100))
    assert [len(part) for part in parts] == [8] * 12
    passes = [np.concatenate(parts[first : first + 4]) for first in (0, 4, 8)]
    assert all(sorted(order) == list(range(32)) for order in passes)
    assert len({tuple(order) for order in passes}) == 3


def test_orders_are_shuffled_and_repeatable() -> None:
    assert time_order(1, 2, 3, 64).tolist() == time_order(1, 2, 3, 64).tolist()
    places = np.mean([time_order(0, update, 0, 16) for update in range(2000)], axis=0)
    np.testing.assert_allclose(places, 7.5, atol=0.5)


def scale(ppo: PPO) -> float:
    return float(ppo.state()["advantage_scale"])


def test_the_scale_of_the_advantages_settles_at_their_size() -> None:
    ppo = algorithm()
    for number in range(3000):
        after_updates(ppo, [(0.2 / scale(ppo)) ** 2])
        assert scale(ppo) > 0.19, number
    assert scale(ppo) == pytest.approx(0.2, rel=1e-3)


def test_one_segment_does_not_drive_the_scale_beyond_the_size_of_its_advantages() -> None:
    """Its updates all count the same advantages, in units of the scale that it began with."""
    assert scale(after_updates(algorithm(), [900.0] * 40)) == pytest.approx(30.0)
    assert scale(after_updates(algorithm(), [6.0] * 24)) == pytest.approx(1.025**24)  # as slowly as ever


def test_a_skipped_update_leaves_the_scale_alone() -> None:
    ppo = algorithm()
    ppo.follow(update(1, 9.0, skipped=True), Clock(1, 0, 1), tf.Variable(0.0))
    assert scale(ppo) == 1.0


def test_the_scale_is_saved_and_restored() -> None:
    first, second = after_updates(algorithm(), [3.0, 0.5, 2.0]), algorithm()
    second.restore(first.state())
    assert scale(second) == scale(first) != 1.0
    second.restore({})  # a checkpoint that has none
    assert scale(second) == 1.0
