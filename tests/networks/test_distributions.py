"""The normal policy against its formulas, worked number by number, with analytic gradients."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import tensorflow as tf
from gymnasium.spaces import Box

from dba3c.networks.distributions import LEAST_VARIANCE, Gaussian, Normals, family
from dba3c.types import Array, Spaces
from tests.fakes.batches import spaces

BATCH, NUMBERS = 7, 3
BELOW_ONE = np.float32(1 - 2**-24)  # the largest noise there is


def drawn(variances: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Means, variances and actions, in double precision."""
    random = np.random.default_rng(seed)
    mean = random.normal(size=(BATCH, NUMBERS))
    variance = random.uniform(0.05, 4, size=(BATCH, variances))
    return mean, variance, mean + random.normal(size=(BATCH, NUMBERS))


def slow_log_density(mean: Array, variance: Array, action: Array) -> float:
    """Logarithm of the product of each number's density."""
    wide = np.broadcast_to(variance, mean.shape)
    return math.fsum(
        math.log(math.exp(-((a - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v))
        for m, v, a in zip(mean, wide, action, strict=True)
    )


@pytest.mark.parametrize("variances", [1, NUMBERS])
def test_log_densities_are_those_of_the_slow_formula(variances: int) -> None:
    mean, variance, actions = drawn(variances)
    expected = [slow_log_density(*row) for row in zip(mean, variance, actions, strict=True)]
    policy = Gaussian(tf.constant(mean), tf.constant(variance))
    np.testing.assert_allclose(policy.log_probabilities(tf.constant(actions)), expected, rtol=1e-12)


@pytest.mark.parametrize("variances", [1, NUMBERS])
def test_entropies_are_the_mean_of_the_log_densities(variances: int) -> None:
    """−∫ p ln p, number by number, by a sum over a fine grid."""
    mean, variance, _ = drawn(variances)
    grid = np.linspace(-40, 40, 200_001)
    expected = []
    for row, spread in zip(mean, np.broadcast_to(variance, mean.shape), strict=True):
        densities = [
            np.exp(-((grid - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v) for m, v in zip(row, spread, strict=True)
        ]
        expected.append(-sum(np.sum(p * np.log(p + 1e-300)) * (grid[1] - grid[0]) for p in densities))
    np.testing.assert_allclose(Gaussian(tf.constant(mean), tf.constant(variance)).entropies(), expected, rtol=1e-9)


@pytest.mark.parametrize("variances", [1, NUMBERS])
def test_gradients_are_the_analytic_ones(variances: int) -> None:
    """∂ln p/∂μ = (a − μ)/σ²,  ∂ln p/∂σ² = ½((a − μ)²/σ⁴ − 1/σ²),  ∂H/∂σ² = 1/(2σ²), summed where σ² is shared."""
    mean, variance, actions = (tf.constant(array) for array in drawn(variances))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([mean, variance])
        policy = Gaussian(mean, variance)
        density, entropy = policy.log_probabilities(actions), policy.entropies()
    distance, wide = actions - mean, np.broadcast_to(variance, mean.shape)

    def shared(each: Array) -> Array:
        return np.asarray(np.sum(each, axis=1, keepdims=True) if variances == 1 else each)

    np.testing.assert_allclose(tape.gradient(density, mean), distance / wide, rtol=1e-12)
    np.testing.assert_allclose(
        tape.gradient(density, variance), shared((distance**2 / wide**2 - 1 / wide) / 2), rtol=1e-10
    )
    np.testing.assert_allclose(tape.gradient(entropy, variance), shared(1 / (2 * wide)), rtol=1e-12)
    assert tape.gradient(entropy, mean) is None or not np.any(tape.gradient(entropy, mean))


def test_noise_becomes_the_quantiles_of_the_policy() -> None:
    noise = np.array([[0.5, 0.025, 0.975], [0.25, 0.9, 2**-24]], np.float32)
    mean, variance = np.array([[1, 2, 3]] * 2, np.float32), np.array([[0.25], [4]], np.float32)
    actions, densities = Gaussian(tf.constant(mean), tf.constant(variance)).sample(tf.constant(noise))
    for row in range(2):
        expected = [
            NormalDist(m, variance[row, 0] ** 0.5).inv_cdf(float(u)) for m, u in zip(mean[row], noise[row], strict=True)
        ]
        np.testing.assert_allclose(actions[row], expected, rtol=1e-4)
        assert float(densities[row]) == pytest.approx(
            slow_log_density(mean[row], variance[row], actions[row].numpy()), rel=1e-4
        )


@pytest.mark.parametrize("noise", [0.0, BELOW_ONE])
def test_the_most_extreme_noise_gives_finite_actions(noise: float) -> None:
    policy = Gaussian(tf.zeros((1, 2)), tf.ones((1, 1)))
    actions, densities = policy.sample(tf.fill((1, 2), np.float32(noise)))
    assert 5 < np.abs(actions).max() < 6
    assert np.isfinite(densities).all()


def test_the_most_likely_action_is_the_mean() -> None:
    mean, variance, _ = drawn(1)
    np.testing.assert_array_equal(Gaussian(tf.constant(mean), tf.constant(variance)).mode(), mean)


def test_variances_are_softplus_of_an_output_and_never_vanish() -> None:
    outputs = {"mean": tf.zeros((3, 2)), "variance": tf.constant([[-200.0], [0.0], [3.0]])}
    entropies = Normals(2, each=False).of(outputs).entropies()
    expected = [math.log(2 * math.pi * (math.log1p(math.exp(x)) + LEAST_VARIANCE)) + 1 for x in (-200.0, 0.0, 3.0)]
    np.testing.assert_allclose(entropies, expected, rtol=1e-5)


def test_the_space_of_actions_chooses_the_family() -> None:
    vectors = Spaces(spaces().observation, Box(-np.inf, np.inf, (4,), np.float32))
    assert {name: head.size for name, head in family(vectors, "scalar").heads.items()} == {"mean": 4, "variance": 1}
    assert {name: head.size for name, head in family(vectors, "each").heads.items()} == {"mean": 4, "variance": 4}
    assert family(vectors, "each").noise_size == 4
    assert {name: head.size for name, head in family(spaces(6), "each").heads.items()} == {"policy": 6}
