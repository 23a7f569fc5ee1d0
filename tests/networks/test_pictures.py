"""Pictures are prepared as TensorFlow's own operations would do it, in memory that each thread has for itself."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from dba3c.networks.pictures import ALIGNMENT, TOGETHER, Pictures
from dba3c.types import Array

LARGE = TOGETHER + 3  # more than are prepared together


def seen(count: int, channels: int = 4, size: int = 20) -> Array:
    return np.random.default_rng(count).integers(256, size=(count, channels, size, size)).astype(np.uint8)


@tf.function  # compiled, as it was in training: division by a constant becomes multiplication
def slowly(observations: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tf.cast(observations, tf.float32) / 255.0, [0, 2, 3, 1])


@pytest.mark.parametrize("channels", [1, 4, 12])
@pytest.mark.parametrize("count", [1, TOGETHER, LARGE])
def test_pictures_are_those_of_tensorflow_to_the_bit(count: int, channels: int) -> None:
    pictures = seen(count, channels)
    np.testing.assert_array_equal(Pictures(standardise=False)(pictures), slowly(tf.constant(pictures)))


def test_pictures_need_not_lie_one_after_the_other() -> None:
    every = seen(2 * LARGE)
    np.testing.assert_array_equal(Pictures(standardise=False)(every[::2]), slowly(tf.constant(every[::2])))


def test_standardised_pictures_have_mean_0_and_deviation_1() -> None:
    prepared = Pictures(standardise=True)(np.concatenate([seen(LARGE), np.full((1, 4, 20, 20), 87, np.uint8)])).numpy()
    np.testing.assert_allclose(prepared.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(prepared[:-1].std(axis=(1, 2, 3)), 1, rtol=2e-3)  # the least variance is added
    np.testing.assert_allclose(prepared[-1], 0, atol=1e-5)


def test_a_thread_reuses_its_memory_and_that_of_another_stays() -> None:
    """Where it would not start at a multiple of 64 bytes, TensorFlow might crash or copy."""
    pictures = Pictures(standardise=False)
    theirs: list[tf.Tensor] = []
    thread = threading.Thread(target=lambda: theirs.append(pictures(seen(LARGE))))
    thread.start()
    thread.join()
    first = pictures._room(100).ctypes.data
    assert first % ALIGNMENT == 0
    assert pictures._room(50).ctypes.data == first
    pictures(seen(LARGE) // 2)
    np.testing.assert_array_equal(theirs[0], slowly(tf.constant(seen(LARGE))))
