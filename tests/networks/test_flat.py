"""The flat vector: pack and unpack are inverse, and gradients pass through."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from dba3c.networks.flat import TensorLayout, pack
from dba3c.types import Array

LAYOUT = TensorLayout(("kernel", "bias", "scalar", "cube"), ((2, 3), (4,), (), (3, 1, 5)))
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
