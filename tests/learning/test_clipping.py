"""Clipping: the paper's clip per tensor, and which kind is done where."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from dba3c.learning import clipping
from dba3c.learning.clipping import clip_tensors
from dba3c.networks.flat import TensorLayout, pack
from dba3c.types import Array
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
