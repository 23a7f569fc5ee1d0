"""The flat vector: pack and unpack are inverse, gradients pass through, the paper's clip per tensor."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from dba3c.networks.flat import Layout, pack
from dba3c.types import Array

LAYOUT = Layout(("kernel", "bias", "scalar", "cube"), ((2, 3), (4,), (), (3, 1, 5)))
TOTAL = 6 + 4 + 1 + 15


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def tensors(seed: int = 0) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.normal(size=shape).astype(np.float32) for shape in LAYOUT.shapes]


def test_sizes() -> None:
    assert LAYOUT.sizes == [6, 4, 1, 15]
    assert LAYOUT.total == TOTAL


def test_unpack_undoes_pack() -> None:
    originals = tensors()
    parts = LAYOUT.unpack(tf.constant(pack(originals)))
    for part, original, shape in zip(parts, originals, LAYOUT.shapes, strict=True):
        assert part.shape == shape
        np.testing.assert_array_equal(part.numpy(), original)


def test_pack_undoes_unpack() -> None:
    vector = np.random.default_rng(1).normal(size=TOTAL).astype(np.float32)
    packed = pack([part.numpy() for part in LAYOUT.unpack(tf.constant(vector))])
    assert packed.dtype == np.float32
    assert packed.tobytes() == vector.tobytes()


def test_elements_lie_row_by_row() -> None:
    kernel, bias, scalar, cube = LAYOUT.unpack(tf.range(TOTAL, dtype=tf.float32))
    np.testing.assert_array_equal(kernel, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(bias, [6, 7, 8, 9])
    assert float(scalar) == 10
    np.testing.assert_array_equal(cube[:, 0, 0], [11, 16, 21])


def test_pack_takes_arrays_of_any_memory_order() -> None:
    kernel = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    np.testing.assert_array_equal(pack([kernel, kernel.T]), floats([0, 1, 2, 3, 4, 5, 0, 3, 1, 4, 2, 5]))


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        LAYOUT.unpack(tf.zeros(TOTAL + 1))


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_passes_through_unpack(compiled: bool) -> None:
    """d/dv of Σ c·x³ is 3·c·x² in the place that each x has in v; the third tensor is left out and gets zeros."""
    coefficients, values = tensors(2), tensors(3)
    coefficients[2] = np.zeros((), np.float32)

    def gradient(vector: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(vector)
            parts = LAYOUT.unpack(vector)
            total = tf.add_n([tf.reduce_sum(coefficients[i] * parts[i] ** 3) for i in (0, 1, 3)])
        return tape.gradient(total, vector)

    result = (tf.function(gradient) if compiled else gradient)(tf.constant(pack(values)))
    expected = pack([3 * c * x**2 for c, x in zip(coefficients, values, strict=True)])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-7)


def clip(parts: list[Array], average_norm: float) -> list[Array]:
    clipped = LAYOUT.clip_tensors(tf.constant(pack(parts)), average_norm)
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
