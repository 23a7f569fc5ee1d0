"""Clipping: the paper's clip per tensor, and which kind is done where."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from dba3c.learning import clipping
from dba3c.learning.clipping import GuardedLearner, Outliers, clip_tensors
from dba3c.networks.flat import TensorLayout, pack
from dba3c.types import Array, Batch, Gradient
from tests.fakes.batches import batch_of
from tests.fakes.settings import settings

LAYOUT = TensorLayout(("kernel", "bias", "scalar", "cube"), ((2, 3), (4,), (), (3, 1, 5)))
TOTAL = 6 + 4 + 1 + 15


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def tensors(seed: int = 0) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.normal(size=shape).astype(np.float32) for shape in LAYOUT.shapes]


def clip(parts: list[Array], average_norm: float) -> list[Array]:
    clipped = clip_tensors(tf.constant(pack(parts)), LAYOUT, average_norm)
    return [part.numpy() for part in LAYOUT.unpack(clipped)]


def test_clip_worked_by_hand() -> None:
    """Limits at 0.1 × elements: 0.6, 0.4, 0.1 and 1.5. The norms are 2 (cut), 0.2 (kept), 0.5 (cut) and 0 (kept)."""
    kernel, bias, scalar, cube = clip(
        [np.full((2, 3), 2 / math.sqrt(6)), np.full(4, 0.1), np.array(-0.5), np.zeros((3, 1, 5))], 0.1
    )
    np.testing.assert_allclose(kernel, np.full((2, 3), 0.6 / math.sqrt(6)), rtol=1e-6)
    np.testing.assert_allclose(bias, np.full(4, 0.1), rtol=1e-6)
    assert float(scalar) == pytest.approx(-0.1)
    np.testing.assert_array_equal(cube, np.zeros((3, 1, 5)))


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.2, 1.0, 1e3])
@pytest.mark.parametrize("average_norm", [0.1, 0.5])
def test_clip_limits_each_norm_and_keeps_each_direction(average_norm: float, scale: float) -> None:
    parts = [scale * part for part in tensors(4)]
    for before, after in zip(parts, clip(parts, average_norm), strict=True):
        norm, limit = float(np.linalg.norm(before)), average_norm * before.size
        np.testing.assert_allclose(after, before * min(1.0, limit / norm), rtol=1e-5)


def test_clip_of_one_tensor_leaves_the_others_alone() -> None:
    """A joint norm would shrink all of them."""
    parts = [np.full(shape, 1e-2, np.float32) for shape in LAYOUT.shapes]
    parts[1] = np.full(4, 1e6, np.float32)
    after = clip(parts, 0.1)
    assert np.linalg.norm(after[1]) == pytest.approx(0.4, rel=1e-5)
    for i in (0, 2, 3):
        np.testing.assert_allclose(after[i], parts[i], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_clip_does_not_hide_what_is_not_finite(bad: float) -> None:
    """The update counts such gradients afterwards, so they must still be seen."""
    parts = tensors(5)
    parts[0][1, 1] = bad
    assert not np.isfinite(clip(parts, 0.1)[0]).all()


@pytest.mark.parametrize(
    ("kind", "each", "mean"), [("none", 1, 1), ("tensor", 0.1 * 6 / 60**0.5, 1), ("global", 1, 0.1)]
)
def test_each_kind_is_done_in_its_place(kind: str, each: float, mean: float) -> None:
    """Tensors are clipped on each rank, the norm of the whole gradient after averaging."""
    layout = TensorLayout(("kernel",), ((6,),))
    config = settings(f"algorithm.clip={kind}", "algorithm.clip_norm=0.1").algorithm
    gradient = tf.constant([1.0, 0, 0, 0, 0, 0]) * (60**0.5 if kind == "tensor" else 1.0)
    np.testing.assert_allclose(clipping.of_each_rank(config, layout)(gradient), gradient * each, rtol=1e-6)
    limit = clipping.limit_of_the_mean(config)
    np.testing.assert_allclose(1.0 if limit is None else clipping.norm_scale(gradient, limit), mean, rtol=1e-6)


class Scripted:
    """Computes gradients of ten samples with given mean errors."""

    def __init__(self, errors: list[float]) -> None:
        self._errors = iter(errors)

    def gradients(self, _batch: Batch) -> Iterator[Gradient]:
        sums = {"td_error": 10 * next(self._errors), "q": 5.0}
        yield Gradient(np.ones(3, np.float32), 10, 4, 7, sums, {"max_lag": 0.0})


def judged(errors: list[float], outliers: Outliers, said: list[str]) -> list[Gradient]:
    """What a guard on rank 1 of 2 makes of them, with an update after each."""
    guard, passed = GuardedLearner(Scripted(errors), outliers, lambda: 1, said.append), []
    for _ in errors:
        (gradient,) = guard.gradients(batch_of(1, 1))
        outliers.follow(np.array([0.0, gradient.by_rank["error"]]))
        passed.append(gradient)
    return passed


def slow_limit(errors: list[float], deviations: float) -> float:
    """Mean and deviation of all so far, each with the weight that an exponential mean of rate 0.01 gives it."""
    weights: list[float] = []
    for count in range(1, len(errors) + 1):
        rate = max(0.01, 1 / count)
        weights = [weight * (1 - rate) for weight in weights] + [rate]
    mean = math.fsum(w * e for w, e in zip(weights, errors, strict=True))
    variance = math.fsum(w * (e - mean) ** 2 for w, e in zip(weights, errors, strict=True))
    return mean + deviations * math.sqrt(variance)


def test_the_limit_follows_mean_and_deviation() -> None:
    errors = np.random.default_rng(0).uniform(0.5, 1.5, 250).tolist()
    outliers = Outliers(6)
    for number, error in enumerate(errors):
        assert outliers.limit(0) == (np.inf if number < 100 else pytest.approx(slow_limit(errors[:number], 6)))
        outliers.follow(np.array([error, 0.0]))
    assert outliers.limit(1) == np.inf  # that rank had no gradient


def test_an_outlier_is_dropped_counted_and_named_once() -> None:
    usual = np.random.default_rng(1).uniform(0.9, 1.1, 150).tolist()
    said: list[str] = []
    *before, bad, after, worse = judged([*usual, 30.0, 1.0, 90.0], Outliers(6), said)
    assert all(gradient.samples == 10 and gradient.sums["outliers"] == 0 for gradient in (*before, after))
    for dropped in (bad, worse):
        assert (dropped.samples, dropped.steps, dropped.mean.tolist()) == (0, 4, [0, 0, 0])
        assert dropped.sums == {"td_error": 0.0, "q": 0.0, "outliers": 1.0}
    assert len(said) == 1
    assert said[0].startswith("dropped a gradient with a mean error of 30, above 1.")


def test_errors_that_stay_large_are_learned_from_in_the_end() -> None:
    usual = np.random.default_rng(2).uniform(0.9, 1.1, 150).tolist()
    passed = judged([*usual, *[3.0] * 100], Outliers(6), [])
    assert passed[150].samples == 0
    assert passed[-1].samples == 10


def test_nothing_is_dropped_before_the_errors_are_known() -> None:
    assert all(gradient.samples == 10 for gradient in judged([*[1.0] * 50, 1000.0], Outliers(6), []))
