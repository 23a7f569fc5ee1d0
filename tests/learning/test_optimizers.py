"""The optimizers against slow float64 transcriptions and values worked by hand; clip, schedule, state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dba3c.config.schema import Optimizer as Config
from dba3c.learning.optimizers import FlatOptimizer, adam_rate, learning_rate
from dba3c.types import Array, Clock

PAPER: dict[str, Any] = {  # Table 1, and RMSProp as PAAC has it
    "name": "adam", "learning_rate": 0.001, "schedule": "constant", "beta1": 0.8, "beta2": 0.75, "epsilon": 1e-8,
    "decay": 0.99, "momentum": 0.0, "mean_square": 1.0, "square_sum": 0.1, "shared": True,
}  # fmt: skip
NAMES = ["adam", "rmsprop", "sgd", "momentum_sgd", "adagrad"]
START = Clock(updates=0, steps=0, total_steps=1)


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def config(**changes: Any) -> Config:
    return Config(**PAPER | changes)


def gradients(steps: int = 20, size: int = 7, seed: int = 0) -> Array:
    """[steps, size] of very different magnitudes."""
    random = np.random.default_rng(seed)
    return (random.normal(size=(steps, size)) * 10.0 ** random.uniform(-4, 1, size=(1, size))).astype(np.float32)


def run(settings: Config, grads: Array, start: Array, clip: float | None = None) -> Array:
    """The weights after each step, [steps, size]."""
    weights = tf.Variable(start.astype(np.float32))
    optimizer = FlatOptimizer(settings, weights, clip)
    path = []
    for gradient in grads:
        optimizer.apply(gradient, START)
        path.append(weights.numpy())
    return np.array(path)


def slow_adam(c: Config, grads: Array, start: Array) -> Array:
    """m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²;  w ← w − η·√(1−β2^t)/(1−β1^t) · m/(√v + ε̂), element by element."""
    weights, path = [float(w) for w in start], []
    m, v = [0.0] * len(weights), [0.0] * len(weights)
    for t, gradient in enumerate(grads, start=1):
        step = c.learning_rate * math.sqrt(1 - c.beta2**t) / (1 - c.beta1**t)
        for i, g in enumerate(map(float, gradient)):
            m[i] = c.beta1 * m[i] + (1 - c.beta1) * g
            v[i] = c.beta2 * v[i] + (1 - c.beta2) * g * g
            weights[i] -= step * m[i] / (math.sqrt(v[i]) + c.epsilon)
        path.append(list(weights))
    return np.array(path)


def slow_rmsprop(c: Config, grads: Array, start: Array) -> Array:
    """s ← ρ·s + (1−ρ)·g²;  u ← μ·u + η·g/√(s + ε);  w ← w − u, element by element."""
    weights, path = [float(w) for w in start], []
    s, u = [c.mean_square] * len(weights), [0.0] * len(weights)
    for gradient in grads:
        for i, g in enumerate(map(float, gradient)):
            s[i] = c.decay * s[i] + (1 - c.decay) * g * g
            u[i] = c.momentum * u[i] + c.learning_rate * g / math.sqrt(s[i] + c.epsilon)
            weights[i] -= u[i]
        path.append(list(weights))
    return np.array(path)


def slow_sgd(c: Config, grads: Array, start: Array) -> Array:
    return start - c.learning_rate * np.cumsum(grads.astype(np.float64), axis=0)


def slow_momentum_sgd(c: Config, grads: Array, start: Array) -> Array:
    """S1 of the A3C paper: m ← α·m + (1−α)·g;  w ← w − η·m, element by element."""
    weights, path = [float(w) for w in start], []
    m = [0.0] * len(weights)
    for gradient in grads:
        for i, g in enumerate(map(float, gradient)):
            m[i] = c.momentum * m[i] + (1 - c.momentum) * g
            weights[i] -= c.learning_rate * m[i]
        path.append(list(weights))
    return np.array(path)


def slow_adagrad(c: Config, grads: Array, start: Array) -> Array:
    """s ← s + g²;  w ← w − η·g/√(s + ε), element by element."""
    weights, path = [float(w) for w in start], []
    s = [c.square_sum] * len(weights)
    for gradient in grads:
        for i, g in enumerate(map(float, gradient)):
            s[i] += g * g
            weights[i] -= c.learning_rate * g / math.sqrt(s[i] + c.epsilon)
        path.append(list(weights))
    return np.array(path)


SLOW = {
    "adam": slow_adam,
    "rmsprop": slow_rmsprop,
    "sgd": slow_sgd,
    "momentum_sgd": slow_momentum_sgd,
    "adagrad": slow_adagrad,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "changes",
    [
        {"name": "adam"},
        {"name": "adam", "epsilon": 1e-3},
        {"name": "adam", "beta1": 0.9, "beta2": 0.999, "learning_rate": 0.01},
        {"name": "adam", "beta1": 0.0, "beta2": 0.0},
        {"name": "rmsprop", "epsilon": 0.1},
        {"name": "rmsprop", "epsilon": 1e-5, "momentum": 0.9, "learning_rate": 0.01},
        {"name": "rmsprop", "decay": 0.5, "momentum": 0.5},
        {"name": "rmsprop", "epsilon": 0.1, "mean_square": 0.0},
        {"name": "sgd", "learning_rate": 0.1},
        {"name": "momentum_sgd", "learning_rate": 0.1, "momentum": 0.9},
        {"name": "adagrad", "learning_rate": 0.1},
        {"name": "adagrad", "learning_rate": 0.01, "square_sum": 0.0, "epsilon": 1e-3},
    ],
)
def test_equals_the_slow_transcription(changes: dict[str, Any], seed: int) -> None:
    """From weights at zero, so that what is compared are the steps themselves and not mostly the start."""
    settings, grads, start = config(**changes), gradients(seed=seed), np.zeros(7)
    np.testing.assert_allclose(
        run(settings, grads, start), SLOW[settings.name](settings, grads, start), rtol=1e-4, atol=1e-8
    )


@pytest.mark.parametrize("name", NAMES)
def test_starts_from_the_weights_it_is_given(name: str) -> None:
    start = np.random.default_rng(1).normal(size=7).astype(np.float32)
    settings, grads = config(name=name), gradients()
    np.testing.assert_allclose(run(settings, grads, start), SLOW[name](settings, grads, start), rtol=1e-5, atol=1e-6)


def test_adam_worked_by_hand() -> None:
    """g = 2e-3 at β2 = 0.75, ε = 1e-3: the root of v is 1e-3, as large as ε, so where ε stands is plain to see.

    m = 0.2·g = 4e-4;  v = 0.25·g² = 1e-6;  η_1 = 1e-3·√0.25/0.2 = 2.5e-3
    ε̂ beside the root:  2.5e-3·4e-4/(1e-3 + 1e-3) = 5.0e-4
    PyTorch's form:      1e-3·(m/0.2)/(√(v/0.25) + 1e-3) = 1e-3·2e-3/(2e-3 + 1e-3) = 6.67e-4
    ε inside the root:   2.5e-3·4e-4/√(1e-6 + 1e-3) = 3.2e-5
    """
    (first,) = run(config(epsilon=1e-3), floats([[2e-3]]), np.zeros(1))
    assert first[0] == pytest.approx(-5.0e-4, rel=1e-5)


def test_adam_step_hardly_depends_on_the_size_of_the_gradient() -> None:
    """At the first step it is the learning rate itself, where ε is negligible."""
    (first,) = run(config(), floats([[1e-2, 1.0, -100.0]]), np.zeros(3))
    np.testing.assert_allclose(first, [-1e-3, -1e-3, 1e-3], rtol=1e-4)


def test_adam_rate_is_equation_5() -> None:
    settings = config()
    assert adam_rate(settings, 0.001, 1) == pytest.approx(0.001 * 0.5 / 0.2)
    assert adam_rate(settings, 0.001, 2) == pytest.approx(0.001 * math.sqrt(1 - 0.75**2) / (1 - 0.8**2))
    assert adam_rate(settings, 0.001, 10_000) == pytest.approx(0.001)


def test_rmsprop_worked_by_hand() -> None:
    """g = 3, ρ = 0.5: s = 0.5·1 + 0.5·9 = 5, root of s + ε = 5 + 4 is 3, so the first step is η·3/3 = η.

    Without gradient s halves to 2.5 and only momentum moves the weight on: half of the step before.
    """
    settings = config(name="rmsprop", learning_rate=0.125, decay=0.5, epsilon=4.0, momentum=0.5)
    path = run(settings, floats([[3.0], [0.0], [0.0]]), np.zeros(1))
    np.testing.assert_allclose(path[:, 0], [-0.125, -0.1875, -0.21875], rtol=1e-6)


def test_sgd_worked_by_hand() -> None:
    path = run(config(name="sgd", learning_rate=0.5), floats([[2.0, -4.0], [1.0, 0.0]]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(path, [[0.0, 3.0], [-0.5, 3.0]])


def test_adagrad_worked_by_hand() -> None:
    """From a sum of 7, g = 3 makes 16 and a step of 3/4; then g = 0 none; then g = 3 makes 25: 3/5."""
    settings = config(name="adagrad", learning_rate=1.0, square_sum=7.0, epsilon=1e-12)
    path = run(settings, floats([[3.0], [0.0], [3.0]]), np.zeros(1))
    np.testing.assert_allclose(path[:, 0], [-0.75, -0.75, -1.35], rtol=1e-6)


def test_momentum_averages_gradients() -> None:
    """α = 0.5: m is 1, then 0.5, then 0.25 after one gradient of 2; a sum of gradients would start with 2."""
    settings = config(name="momentum_sgd", learning_rate=1.0, momentum=0.5)
    path = run(settings, floats([[2.0], [0.0], [0.0]]), np.zeros(1))
    np.testing.assert_array_equal(path[:, 0], [-1.0, -1.5, -1.75])


@pytest.mark.parametrize("name", NAMES)
def test_global_clip_shortens_a_long_gradient_only(name: str) -> None:
    """Norm 5: cut to 0.5 it is a tenth; a limit of 5.1 leaves it as it is."""
    settings, gradient, start = config(name=name), floats([[3.0, 0.0, -4.0]]), np.zeros(3)
    np.testing.assert_allclose(run(settings, gradient, start, clip=0.5), run(settings, gradient / 10, start), rtol=1e-6)
    np.testing.assert_allclose(run(settings, gradient, start, clip=5.1), run(settings, gradient, start), rtol=1e-6)


def test_global_clip_leaves_no_gradient_alone() -> None:
    np.testing.assert_array_equal(
        run(config(name="sgd"), np.zeros((1, 3), np.float32), np.ones(3), clip=0.5), np.ones((1, 3))
    )


@pytest.mark.parametrize(
    ("progress", "linear", "quadratic"),
    [(0.0, 1.0, 1.0), (0.25, 0.75, 0.5625), (0.5, 0.5, 0.25), (1.0, 0.0, 0.0), (1.5, 0.0, 0.0)],
)
def test_schedules_end_at_zero(progress: float, linear: float, quadratic: float) -> None:
    assert learning_rate(config(schedule="linear"), progress) == pytest.approx(0.001 * linear)
    assert learning_rate(config(schedule="quadratic"), progress) == pytest.approx(0.001 * quadratic)
    assert learning_rate(config(schedule="constant"), progress) == 0.001


@pytest.mark.parametrize("name", NAMES)
def test_schedule_scales_the_step(name: str) -> None:
    settings, gradient = config(name=name, schedule="linear"), floats([1.0, -2.0])
    steps = []
    for progress in (0.0, 0.75, 1.0):
        weights = tf.Variable(tf.zeros(2))
        FlatOptimizer(settings, weights, None).apply(gradient, Clock(0, round(100 * progress), 100))
        steps.append(weights.numpy())
    np.testing.assert_allclose(steps[1], steps[0] / 4, rtol=1e-6)
    np.testing.assert_array_equal(steps[2], [0.0, 0.0])


@pytest.mark.parametrize("name", NAMES)
def test_restored_state_goes_on_bit_for_bit(name: str) -> None:
    settings, grads, start = config(name=name, momentum=0.5), gradients(steps=12), np.ones(7)
    unbroken = run(settings, grads, start)
    weights = tf.Variable(start.astype(np.float32))
    first = FlatOptimizer(settings, weights, None)
    for gradient in grads[:5]:
        first.apply(gradient, START)
    state, saved = first.state(), weights.numpy()
    copies = {key: np.array(value) for key, value in state.items()}
    first.apply(grads[5], START)  # what was saved is a copy: training that goes on does not change it
    for key, value in state.items():
        np.testing.assert_array_equal(value, copies[key])
    resumed = tf.Variable(saved)
    second = FlatOptimizer(settings, resumed, None)
    second.restore(state)
    for gradient, expected in zip(grads[5:], unbroken[5:], strict=True):
        second.apply(gradient, START)
        assert resumed.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("adam", {"m", "v", "steps"}),
        ("rmsprop", {"mean_square", "momentum", "steps"}),
        ("momentum_sgd", {"m", "steps"}),
        ("adagrad", {"square_sum", "steps"}),
        ("sgd", {"steps"}),
    ],
)
def test_state_holds_every_slot_and_the_number_of_steps(name: str, slots: set[str]) -> None:
    optimizer = FlatOptimizer(config(name=name), tf.Variable(tf.zeros(3)), None)
    optimizer.apply(np.ones(3, np.float32), START)
    state = optimizer.state()
    assert set(state) == slots
    assert int(state["steps"]) == 1


def test_adam_without_its_state_goes_elsewhere() -> None:
    """Had a resumed run lost the state, the round trip above would notice."""
    grads, start = gradients(steps=6), np.zeros(7)
    unbroken = run(config(), grads, start)
    forgotten = run(config(), grads[3:], unbroken[2])
    assert not np.allclose(forgotten, unbroken[3:], rtol=1e-2)
