"""A3C: loss and gradient against the paper's formula worked sample by sample, and how noise becomes an action."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from dba3c.learning.a3c import A3C
from dba3c.types import Array, Batch
from tests.fakes.settings import settings

TINY, ENTROPY, VALUE = 1e-6, 0.01, 0.5  # of the program that the paper's authors released
BELOW_ONE = np.float32(1 - 2**-24)  # the largest noise there is


class Samples(NamedTuple):
    """What the loss takes."""

    logits: Array  # [B, A]
    values: Array  # [B]
    actions: Array  # [B]
    returns: Array  # [B]


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def integers(values: object) -> Array:
    return np.array(values, np.int32)


def algorithm(entropy: float = ENTROPY, value: float = VALUE) -> A3C:
    return A3C(settings(f"algorithm.entropy={entropy}", f"algorithm.value={value}").algorithm)


def samples(batch: int = 16, n_actions: int = 6, seed: int = 0) -> Samples:
    """Random samples; in the last ones the action is so unlikely that the 1e-6 inside the logarithm matters."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(batch, n_actions), scale=2.0).astype(np.float32)
    actions = random.integers(n_actions, size=batch).astype(np.int32)
    logits[np.arange(batch)[-3:], actions[-3:]] = -12.0, -14.0, -16.0
    return Samples(
        logits,
        random.normal(size=batch).astype(np.float32),
        actions,
        random.normal(size=batch, scale=2.0).astype(np.float32),
    )


def softmax(logits: Array) -> list[float]:
    powers = [math.exp(float(z) - float(max(logits))) for z in logits]
    return [power / math.fsum(powers) for power in powers]


def paper_terms(logits: Array, value: float, action: int, target: float) -> tuple[float, float, float]:
    """−log π(a)·(R − V), (R − V)² and H(π) of one sample, with log x = ln(x + 1e-6)."""
    policy = softmax(logits)
    entropy = -math.fsum(p * math.log(p + TINY) for p in policy)
    return -math.log(policy[action] + TINY) * (target - value), (target - value) ** 2, entropy


def paper_loss(s: Samples, entropy: float = ENTROPY, value: float = VALUE) -> tuple[float, dict[str, float]]:
    terms = [paper_terms(z, float(v), int(a), float(r)) for z, v, a, r in zip(*s, strict=True)]
    policy_term, square, bonus = (math.fsum(column) / len(terms) for column in zip(*terms, strict=True))
    return policy_term + value * square - entropy * bonus, {
        "policy_loss": policy_term,
        "value_loss": value * square,
        "entropy": bonus,
    }


def paper_gradient(s: Samples, entropy: float = ENTROPY, value: float = VALUE) -> tuple[Array, Array]:
    """By hand, with ∂π_j/∂z_k = π_j·(δ_jk − π_k) and the advantage held fixed:

    ∂L/∂z_k = [ −(R − V)·π_a/(π_a + 1e-6)·(δ_ak − π_k) + c_e·π_k·(w_k − Σ_j π_j·w_j) ] / B
    with w = ln(π + 1e-6) + π/(π + 1e-6), and
    ∂L/∂V = 2·c_v·(V − R) / B
    """
    by_logits, batch = np.zeros(s.logits.shape), len(s.values)
    for b in range(batch):
        policy, action = softmax(s.logits[b]), int(s.actions[b])
        advantage = float(s.returns[b]) - float(s.values[b])
        slopes = [math.log(p + TINY) + p / (p + TINY) for p in policy]
        mean_slope = math.fsum(p * w for p, w in zip(policy, slopes, strict=True))
        for k, p in enumerate(policy):
            chosen = -advantage * policy[action] / (policy[action] + TINY) * ((k == action) - p)
            by_logits[b, k] = (chosen + entropy * p * (slopes[k] - mean_slope)) / batch
    by_values = 2 * value * (s.values.astype(np.float64) - s.returns) / batch
    return by_logits, by_values


def tape_gradient(s: Samples, a3c: A3C) -> tuple[Array, Array]:
    logits, values = tf.constant(s.logits), tf.constant(s.values)
    with tf.GradientTape() as tape:
        tape.watch([logits, values])
        loss, _ = a3c.loss(logits, values, s.actions, s.returns)
    by_logits, by_values = tape.gradient(loss, [logits, values])
    return by_logits.numpy(), by_values.numpy()


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_the_papers(seed: int) -> None:
    s = samples(seed=seed)
    loss, figures = algorithm().loss(*s)
    expected, expected_figures = paper_loss(s)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert {name: float(figure) for name, figure in figures.items()} == pytest.approx(expected_figures, rel=1e-5)


def test_loss_worked_by_hand() -> None:
    """Two equally likely actions, V = 1, R = 3: −2·ln ½ + ½·2² − 0.01·ln 2, all but for the 1e-6."""
    loss, _ = algorithm().loss(np.zeros((1, 2), np.float32), floats([1]), integers([0]), floats([3]))
    assert float(loss) == pytest.approx(1.99 * math.log(2) + 2, rel=3e-6)


def test_entropy_is_rewarded() -> None:
    """Without advantage the more even policy has the lower loss, and descent moves an uneven one towards it."""
    none, action = np.zeros(1, np.float32), integers([0])
    even, _ = algorithm().loss(floats([[0, 0, 0]]), none, action, none)
    uneven, _ = algorithm().loss(floats([[2, 0, 0]]), none, action, none)
    assert float(even) == pytest.approx(-0.01 * math.log(3), rel=1e-4)
    assert float(even) < float(uneven)
    by_logits, _ = tape_gradient(Samples(floats([[2, 0, 0]]), none, action, none), algorithm())
    assert by_logits[0, 0] > 0 > by_logits[0, 1]


def test_weights_come_from_the_configuration() -> None:
    s = samples()
    loss, _ = algorithm(entropy=0.3, value=0.7).loss(*s)
    assert float(loss) == pytest.approx(paper_loss(s, entropy=0.3, value=0.7)[0], rel=1e-5)


@pytest.mark.parametrize(("schedule", "share"), [("constant", 1.0), ("linear", 0.25), ("quadratic", 0.0625)])
def test_entropy_weight_follows_its_schedule(schedule: str, share: float) -> None:
    s, a3c = samples(), A3C(settings("algorithm.entropy=0.4", f"algorithm.entropy_schedule={schedule}").algorithm)
    assert float(a3c.loss(*s)[0]) == pytest.approx(paper_loss(s, entropy=0.4)[0], rel=1e-5)
    a3c.anneal(0.75)
    assert float(a3c.loss(*s)[0]) == pytest.approx(paper_loss(s, entropy=0.4 * share)[0], rel=1e-5)


@pytest.mark.parametrize(
    ("entropy", "value"), [(ENTROPY, VALUE), (0.0, VALUE), (0.5, VALUE), (ENTROPY, 0.0), (ENTROPY, 2.0)]
)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_the_analytic_one(seed: int, entropy: float, value: float) -> None:
    s = samples(seed=seed)
    by_logits, by_values = tape_gradient(s, algorithm(entropy, value))
    expected_logits, expected_values = paper_gradient(s, entropy, value)
    np.testing.assert_allclose(by_logits, expected_logits, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(by_values, expected_values, rtol=1e-5, atol=1e-8)


def test_tiny_number_tames_unlikely_actions() -> None:
    """At π(a) = 1e-6 the gradient is half of what it would be without the 1e-6: 1/2 instead of 1."""
    logits = floats([[0.0, math.log(1e-6)]])
    by_logits, _ = tape_gradient(Samples(logits, floats([0]), integers([1]), floats([1])), algorithm(entropy=0.0))
    np.testing.assert_allclose(by_logits, [[0.5, -0.5]], rtol=1e-4)


def test_policy_term_sends_no_gradient_into_the_value() -> None:
    """With the value term switched off nothing is left that the value could learn from."""
    _, by_values = tape_gradient(samples(), algorithm(value=0.0))
    np.testing.assert_array_equal(by_values, np.zeros_like(by_values))


def test_batch_is_averaged() -> None:
    """A batch laid twice behind itself has the same loss, and each sample half the gradient."""
    s = samples()
    twice = Samples(*(np.concatenate([part, part]) for part in s))
    assert float(algorithm().loss(*twice)[0]) == pytest.approx(float(algorithm().loss(*s)[0]), rel=1e-6)
    for double, single in zip(tape_gradient(twice, algorithm()), tape_gradient(s, algorithm()), strict=True):
        np.testing.assert_allclose(double, np.concatenate([single, single]) / 2, rtol=1e-5, atol=1e-9)


def act(logits: Array, noise: Array) -> tuple[Array, Array]:
    """One row of logits for all noises, or one row each."""
    rows = np.broadcast_to(logits, (len(noise), np.shape(logits)[-1])).astype(np.float32)
    actions, log_probabilities = algorithm().act(tf.constant(rows), tf.constant(noise, tf.float32))
    return actions.numpy(), log_probabilities.numpy()


def test_action_changes_exactly_where_the_cumulated_policy_does() -> None:
    """Quarters and halves are exact in float32: [0, ¼) → 0, [¼, ½) → 1, [½, 1) → 2."""
    logits = np.log([0.25, 0.25, 0.5])
    edges = tf.cumsum(tf.nn.softmax(tf.constant(logits, tf.float32))).numpy()
    np.testing.assert_allclose(edges, [0.25, 0.5, 1.0], rtol=1e-6)
    before, at = np.nextafter(edges, np.float32(0)), edges[:-1]
    np.testing.assert_array_equal(act(logits, before)[0], [0, 1, 2])
    np.testing.assert_array_equal(act(logits, at)[0], [1, 2])
    np.testing.assert_array_equal(act(logits, floats([0.0, BELOW_ONE]))[0], [0, 2])


@pytest.mark.parametrize("n_actions", [2, 3, 4, 6, 9, 18])
def test_equal_shares_have_equal_parts(n_actions: int) -> None:
    middles = (np.arange(n_actions) + 0.5) / n_actions
    actions, log_probabilities = act(np.zeros(n_actions), middles)
    np.testing.assert_array_equal(actions, np.arange(n_actions))
    np.testing.assert_allclose(log_probabilities, np.full(n_actions, math.log(1 / n_actions + TINY)), rtol=1e-5)
    assert actions.dtype == np.int32


def test_impossible_actions_are_not_taken() -> None:
    """Noise 0 must pass over a leading action of probability 0, and no noise may land on one in the middle."""
    noise = np.concatenate([[0.0], np.linspace(0, 1, 999, endpoint=False)])
    actions, _ = act(np.array([-200.0, 0.0, -200.0, 0.0]), noise)
    assert actions[0] == 1
    assert set(actions.tolist()) == {1, 3}


def test_frequencies_are_the_policy() -> None:
    logits = np.array([0.3, -1.0, 1.5, 0.0, -2.0, 0.7])
    noise = (np.arange(60_000) + 0.5) / 60_000  # evenly spread, so that frequencies are exact up to one part in 60 000
    actions, _ = act(logits, noise)
    np.testing.assert_allclose(np.bincount(actions, minlength=6) / len(noise), softmax(logits), atol=1e-4)


def test_largest_noise_stays_in_range() -> None:
    """Rounding may leave a cumulated policy below the noise; among these rows some do."""
    logits = np.random.default_rng(0).normal(size=(20_000, 18), scale=3.0).astype(np.float32)
    sums = tf.cumsum(tf.nn.softmax(logits), axis=1).numpy()[:, -1]
    assert (sums <= BELOW_ONE).any(), "no row is a hard case: the test would show nothing"
    actions, log_probabilities = act(logits, np.full(len(logits), BELOW_ONE))
    assert actions.min() >= 0
    assert actions.max() <= 17
    assert np.isfinite(log_probabilities).all()


def test_log_probability_is_that_of_the_action_taken() -> None:
    s = samples(64)
    actions, log_probabilities = act(s.logits, np.random.default_rng(1).random(64))
    expected = [math.log(softmax(row)[action] + TINY) for row, action in zip(s.logits, actions, strict=True)]
    np.testing.assert_allclose(log_probabilities, expected, rtol=1e-5, atol=1e-6)


def test_targets_are_the_actions_and_returns_step_by_step() -> None:
    """T = 2, B = 2; they lie as the observations do."""
    batch = Batch(
        observations=np.zeros((2, 2, 1, 1, 1), np.uint8),
        actions=integers([[1, 2], [3, 4]]),
        log_probabilities=np.zeros((2, 2), np.float32),
        rewards=floats([[1, 2], [4, 8]]),
        discounts=floats([[0.5, 0], [0.5, 0.5]]),
        values=floats([[77, 77], [77, 77], [16, 32]]),  # only the last row is the bootstrap
        versions=np.zeros((2, 2), np.int64),
        episodes=[],
    )
    actions, returns = algorithm().targets(batch, 1.0)
    np.testing.assert_array_equal(actions, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(returns, [[1 + 0.5 * 12, 2], [4 + 0.5 * 16, 8 + 0.5 * 32]])
    assert returns.dtype == np.float32
