"""Q-learning against slow transcriptions of the A3C paper's algorithms 1 and S2; exploration and the target network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gymnasium.spaces import Box

from dba3c.config.messages import ConfigError
from dba3c.learning.exploration import EpsilonGreedy
from dba3c.learning.q import Q, crossed
from dba3c.types import Array, Batch, Clock, Update
from tests.fakes.batches import batch_of, spaces
from tests.fakes.settings import settings

GAMMA = 0.99
ACTIONS = 4
LAMBDA = 0.7
START = Clock(0, 0, 100)


def algorithm(returns: str = "n_step", *more: str) -> Q:
    usual = ("actor.carry=true", f"algorithm.gae_lambda={LAMBDA}", "algorithm.minibatches=5")
    made = Q(settings("algorithm.name=q", f"algorithm.returns={returns}", *usual, *more).algorithm, spaces(ACTIONS))
    made.begin(tf.Variable([1.0]))
    return made


def say_scaled(weights: tf.Variable, observations: Array) -> dict[str, Array]:
    """A network with one weight: it puts out an observation's four pixels times that."""
    return {"q": observations.reshape(-1, ACTIONS).astype(np.float32) / 100 * float(weights[0])}


def play(steps: int, simulators: int, seed: int) -> Batch:
    random = np.random.default_rng(seed)
    over = random.random((steps, simulators)) < 0.25
    return batch_of(
        steps,
        simulators,
        observations=random.integers(256, size=(steps + 1, simulators, 1, 2, 2)).astype(np.uint8),
        actions=random.integers(ACTIONS, size=(steps + 1, simulators)).astype(np.int32),
        rewards=random.choice([-1, 0, 1], size=(steps, simulators)).astype(np.float32),
        discounts=np.where(over, 0, GAMMA).astype(np.float32),
    )


def worths(batch: Batch, t: int, b: int) -> list[float]:
    """Q(s_t, ·; θ⁻)"""
    return [float(pixel) / 100 for pixel in batch.observations[t, b].ravel()]


def one_step_target(batch: Batch, t: int, b: int) -> float:
    """Algorithm 1: y = r for terminal s', else r + γ·max_a' Q(s', a'; θ⁻)."""
    terminal = batch.discounts[t, b] == 0
    return float(batch.rewards[t, b]) + (0.0 if terminal else GAMMA * max(worths(batch, t + 1, b)))


def sarsa_target(batch: Batch, t: int, b: int) -> float:
    """Section 4: y = r + γ·Q(s', a'; θ⁻), where a' is the action taken in s'."""
    terminal = batch.discounts[t, b] == 0
    return float(batch.rewards[t, b]) + (0.0 if terminal else GAMMA * worths(batch, t + 1, b)[batch.actions[t + 1, b]])


def n_step_target(batch: Batch, t: int, b: int) -> float:
    """Algorithm S2: R = 0 for terminal s_t, else max_a Q(s_t, a; θ⁻); then R ← r_i + γ·R, from the last step back.

    The paper's segments end with an episode; ours go on behind it, with an R of their own.
    """
    last = next((i for i in range(t, len(batch.rewards)) if batch.discounts[i, b] == 0), None)
    if last is None:
        last, total = len(batch.rewards) - 1, max(worths(batch, len(batch.rewards), b))
    else:
        total = 0.0
    for i in range(last, t - 1, -1):
        total = float(batch.rewards[i, b]) + GAMMA * total
    return total


def lambda_target(batch: Batch, t: int, b: int) -> float:
    """The mean of the returns of 1, 2, … steps, with weights (1−λ), (1−λ)·λ, … and the rest for the longest.

    Each is the sum of its rewards and, unless the episode ends before, max_a Q of the state that it reaches.
    """
    longest, total, share = len(batch.rewards) - t, 0.0, 1.0
    for length in range(1, longest + 1):
        reached, discount = 0.0, 1.0
        for i in range(t, t + length):
            reached += discount * float(batch.rewards[i, b])
            discount *= float(batch.discounts[i, b])
        weight = share if length == longest else share * (1 - LAMBDA)
        total += weight * (reached + discount * max(worths(batch, t + length, b)))
        share *= LAMBDA
    return total


TARGETS = {"one_step": one_step_target, "sarsa": sarsa_target, "n_step": n_step_target, "lambda": lambda_target}


@pytest.mark.parametrize("returns", TARGETS)
@pytest.mark.parametrize(("steps", "simulators"), [(1, 1), (5, 1), (5, 3), (1, 4), (20, 2)])
def test_targets_are_the_papers(returns: str, steps: int, simulators: int) -> None:
    for seed in range(3):
        batch = play(steps, simulators, seed)
        columns = algorithm(returns).columns(batch, START, say_scaled)
        slow = [[TARGETS[returns](batch, t, b) for b in range(simulators)] for t in range(steps)]
        np.testing.assert_allclose(columns["targets"], slow, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(columns["actions"], batch.actions[:-1])
        assert columns["targets"].dtype == np.float32


def test_the_three_targets_worked_by_hand() -> None:
    """Two steps, γ = 0.99, no reward but the last: Q of the second state is (1, 2), of the third (2.5, 1)."""
    observations = np.array([0, 0, 0, 0, 100, 200, 0, 0, 250, 100, 0, 0], np.uint8).reshape(3, 1, 1, 2, 2)
    batch = batch_of(
        2, 1, observations=observations, actions=np.array([[0], [0], [1]], np.int32),
        rewards=np.array([[0], [1]], np.float32), discounts=np.full((2, 1), GAMMA, np.float32),
    )  # fmt: skip
    expected = {
        "one_step": [0.99 * 2, 1 + 0.99 * 2.5],
        "sarsa": [0.99 * 1, 1 + 0.99 * 1],
        "n_step": [0.99 + 0.99**2 * 2.5, 1 + 0.99 * 2.5],
    }
    for returns, targets in expected.items():
        found = algorithm(returns).columns(batch, START, say_scaled)["targets"]
        np.testing.assert_allclose(found[:, 0], targets, rtol=1e-6)


def test_only_q_lambda_takes_several_passes() -> None:
    """Three passes, each of all five time steps in an order of its own."""
    assert list(algorithm("n_step").minibatches(5, 0, 0)) == [slice(None)]
    steps = np.concatenate([np.arange(5)[part] for part in algorithm("lambda").minibatches(5, 0, 0)])
    np.testing.assert_array_equal(np.sort(steps.reshape(3, 5)), [range(5)] * 3)


def loss_of(q: Q, worths: Array, actions: Array, targets: Array) -> tuple[float, dict[str, float], Array]:
    """The loss, its figures and its gradient."""
    outputs = tf.constant(worths)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        loss, figures = q.loss({"q": outputs}, actions=tf.constant(actions), targets=tf.constant(targets))
    return float(loss), {name: float(figure) for name, figure in figures.items()}, tape.gradient(loss, outputs).numpy()


def test_loss_figures_and_gradient_are_those_of_the_squared_error() -> None:
    random = np.random.default_rng(0)
    said = random.normal(size=(16, ACTIONS)).astype(np.float32)
    actions = random.integers(ACTIONS, size=16).astype(np.int32)
    targets = random.normal(size=16).astype(np.float32)
    loss, figures, gradient = loss_of(algorithm("n_step", "algorithm.value=0.7"), said, actions, targets)
    errors = [float(y - row[a]) for y, row, a in zip(targets, said, actions, strict=True)]
    assert loss == pytest.approx(0.7 * math.fsum(e * e for e in errors) / 16, rel=1e-5)
    assert figures == pytest.approx(
        {
            "value_loss": loss,
            "q": math.fsum(float(row[a]) for row, a in zip(said, actions, strict=True)) / 16,
            "td_error": math.fsum(map(abs, errors)) / 16,
            "epsilon": 1.0,
        },
        rel=1e-5,
    )
    expected = np.zeros((16, ACTIONS))
    for b, (action, error) in enumerate(zip(actions, errors, strict=True)):
        expected[b, action] = -2 * 0.7 * error / 16
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("limit", [0.25, 1.0, 3.0])
def test_a_clipped_error_has_the_gradient_of_its_limit(limit: float) -> None:
    """DQN: the error y − Q is clipped in the update; the gradient of c·e² is −2·c·e, or −2·c·(±limit) beyond it."""
    errors = np.array([-5.0, -1.0, -0.3, 0.0, 0.2, 0.9, 2.5], np.float32)
    q = algorithm("one_step", "algorithm.value=0.5", f"algorithm.error_clip={limit}")
    said, actions = np.zeros((7, ACTIONS), np.float32), np.full(7, 2, np.int32)
    _, _, gradient = loss_of(q, said, actions, errors)
    np.testing.assert_allclose(gradient[:, 2], -np.clip(errors, -limit, limit) / 7, rtol=1e-6)
    assert not gradient[:, [0, 1, 3]].any()


def test_double_q_learning_lets_the_newest_weights_choose() -> None:
    """Weights of −1 prefer what the target network, with 1, thinks the least of."""
    batch = play(5, 3, seed=2)
    q, weights = algorithm("one_step", "algorithm.double=true"), tf.Variable([1.0])
    q.begin(weights)
    np.testing.assert_array_equal(
        q.columns(batch, START, say_scaled)["targets"],
        algorithm("one_step").columns(batch, START, say_scaled)["targets"],
    )
    weights.assign([-1.0])
    slow = [
        [float(batch.rewards[t, b]) + float(batch.discounts[t, b]) * min(worths(batch, t + 1, b)) for b in range(3)]
        for t in range(5)
    ]
    np.testing.assert_allclose(q.columns(batch, START, say_scaled)["targets"], slow, rtol=1e-5, atol=1e-6)


def test_target_and_epsilon_may_follow_updates_instead_of_steps() -> None:
    options = ("algorithm.target_every_updates=3", "algorithm.epsilon_updates=10", "algorithm.epsilons=[0.1]")
    q, weights = algorithm("one_step", *options), tf.Variable([0.0])
    copied = []
    for number in range(1, 8):
        weights.assign([float(number)])
        q.follow(update(80), Clock(number, 80 * number, 1000), weights)
        copied.append(float(q.state()["target"][0]))
    assert copied == [1, 1, 3, 3, 3, 6, 6]
    halfway = q.exploration(np.array([0]), Clock(5, 10**9, 10**9))
    assert halfway[0, 0] == pytest.approx(0.55)


def update(steps: int) -> Update:
    return Update(1, steps, steps, False, False, {}, {})


def test_the_target_is_copied_where_a_multiple_is_reached_or_passed() -> None:
    """Steps come 80 at a time, so a multiple of 100 is hardly ever hit exactly."""
    q, weights = algorithm("n_step", "algorithm.target_every_steps=100"), tf.Variable([1.0])
    copied = []
    for number in range(1, 11):
        weights.assign([float(number)])
        q.follow(update(80), Clock(number, 80 * number, 1000), weights)
        copied.append(float(q.state()["target"][0]))
    assert copied == by_hand(80, 100, 10) == [1, 2, 3, 4, 5, 5, 7, 8, 9, 10]


def by_hand(steps: int, every: int, updates: int) -> list[float]:
    """The update whose weights the target has after each update; before the first copy those it began with."""
    newest, found = 1, []
    for number in range(1, updates + 1):
        if any(multiple % every == 0 for multiple in range(steps * (number - 1) + 1, steps * number + 1)):
            newest = number
        found.append(float(newest))
    return found


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(0, 99, False), (0, 100, True), (99, 100, True), (100, 199, False), (100, 200, True), (150, 420, True)],
)
def test_multiples_are_crossed_once(before: int, now: int, expected: bool) -> None:
    assert crossed(100, before, now) is expected


def test_targets_are_those_of_the_copy_and_not_of_the_newest_weights() -> None:
    batch, weights = play(3, 2, seed=1), tf.Variable([1.0])
    q = algorithm("one_step")
    before = q.columns(batch, START, say_scaled)["targets"]
    weights.assign([3.0])
    q.follow(update(6), Clock(1, 6, 100), weights)
    np.testing.assert_array_equal(q.columns(batch, Clock(1, 6, 100), say_scaled)["targets"], before)
    q.begin(weights)
    assert np.abs(q.columns(batch, START, say_scaled)["targets"] - before).max() > 0.5


def test_the_target_is_saved_and_restored() -> None:
    q, other = algorithm(), algorithm()
    q.begin(tf.Variable([5.0]))
    other.restore(q.state())
    assert other.state()["target"].tolist() == [5.0]
    other.begin(tf.Variable([7.0]))
    other.restore({})  # a checkpoint without: it stays the copy of the weights that were loaded
    assert other.state()["target"].tolist() == [7.0]
    assert q.state()["target"].tolist() == [5.0]


def test_the_statistics_of_outliers_follow_every_update_and_are_saved() -> None:
    q, other = (algorithm("one_step", "algorithm.outlier_deviations=6") for _ in range(2))
    for error in (1.0, 3.0):
        q.follow(update(4)._replace(by_rank={"error": np.array([0.0, error])}), Clock(1, 4, 100), tf.Variable([0.0]))
    other.restore(q.state())
    assert other.state()["outliers"][:, 1].tolist() == [2, 2, 1]
    assert "outliers" not in algorithm().state()


def greedy(*overrides: str) -> EpsilonGreedy:
    return EpsilonGreedy(settings("algorithm.name=q", *overrides).algorithm)


def test_final_epsilons_have_the_papers_shares_and_few_simulators_have_them_all() -> None:
    late = Clock(0, 10**9, 10**9)
    finals = [round(float(value), 6) for value in greedy().epsilons(np.arange(100), late)[:, 0]]
    assert {value: finals.count(value) for value in set(finals)} == {0.1: 40, 0.01: 30, 0.5: 30}
    assert set(finals[:3]) == {0.1, 0.01, 0.5}


def test_epsilons_fall_from_one_in_a_straight_line_and_stay() -> None:
    falling = greedy("algorithm.epsilons=[0.1, 0.5]", "algorithm.epsilon_steps=200")
    found = [falling.epsilons(np.array([0, 1, 2]), Clock(0, steps, 1000))[:, 0] for steps in (0, 50, 100, 200, 900)]
    expected = [[1, 1, 1], [0.775, 0.875, 0.775], [0.55, 0.75, 0.55], [0.1, 0.5, 0.1], [0.1, 0.5, 0.1]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    falling.follow(Clock(0, 100, 1000))
    assert float(falling.mean) == pytest.approx(0.65)


def test_epsilon_belongs_to_the_simulator_whatever_the_layout() -> None:
    eight, clock = greedy(), Clock(0, 500_000, 10**7)
    parts = [eight.epsilons(np.arange(first, first + 4), clock) for first in (0, 4)]
    np.testing.assert_array_equal(np.concatenate(parts), eight.epsilons(np.arange(8), clock))


def act(said: Any, noise: Any, epsilon: float) -> tuple[Array, Array]:
    rows = np.array(noise, np.float32)
    said = np.broadcast_to(np.array(said, np.float32), (len(rows), len(said)))
    chosen = EpsilonGreedy.act(tf.constant(said), tf.constant(rows), tf.fill((len(rows), 1), epsilon))
    return chosen[0].numpy(), chosen[1].numpy()


def test_below_epsilon_any_action_is_taken_and_else_the_best() -> None:
    actions, logs = act([0, 5, 1, 2], [[0.1, 0.0], [0.1, 0.3], [0.1, 0.999999], [0.2, 0.0], [0.9, 0.9]], 0.2)
    assert actions.tolist() == [0, 1, 3, 1, 1]
    rare, usual = math.log(0.05), math.log(0.85)
    np.testing.assert_allclose(logs, [rare, usual, rare, usual, usual], rtol=1e-5)
    assert actions.dtype == np.int32


def test_frequencies_of_actions_are_those_of_epsilon_greedy() -> None:
    noise = np.random.default_rng(0).random((60_000, 2))
    actions, logs = act([0, 0, 1], noise, 0.3)
    np.testing.assert_allclose(np.bincount(actions) / 60_000, [0.1, 0.1, 0.8], atol=0.005)
    np.testing.assert_allclose(np.exp(logs), np.where(actions == 2, 0.8, 0.1), rtol=1e-5)


def test_no_epsilon_is_greedy() -> None:
    assert act([0, 1], [[0.0, 0.0]], 0.0)[0].tolist() == [1]


def test_values_are_those_of_the_best_action() -> None:
    outputs = {"q": tf.constant([[1.0, 3.0, 2.0, 0.0]])}
    _, _, values = algorithm().act(outputs, tf.zeros((1, 2)), tf.ones((1, 1)))
    assert values.numpy().tolist() == [3.0]
    assert algorithm().greedy(outputs).numpy().tolist() == [1]


def test_continuous_actions_are_refused() -> None:
    continuous = spaces()._replace(action=Box(-1, 1, (2,), np.float32))
    with pytest.raises(ConfigError, match=r"^algorithm\.name=q: .* continuous"):
        Q(settings("algorithm.name=q").algorithm, continuous)
