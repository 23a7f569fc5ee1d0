"""The hash of the weights: any other bit gives another one."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.comm.weight_check import weight_hash
from dba3c.types import Array


def floats(values: object) -> Array:
    return np.array(values, np.float32)


def test_hash_is_sixteen_hexadecimal_digits() -> None:
    text = weight_hash(np.arange(5, dtype=np.float32))
    assert len(text) == 16
    assert int(text, 16) >= 0


@pytest.mark.parametrize("place", [0, 50, 99])
def test_hash_changes_with_any_bit(place: int) -> None:
    weights = np.random.default_rng(6).normal(size=100).astype(np.float32)
    hashes = {weight_hash(weights)}
    for bit in range(32):
        changed = weights.copy()
        changed.view(np.uint32)[place] ^= np.uint32(1 << bit)
        hashes.add(weight_hash(changed))
    assert len(hashes) == 33


def test_hash_changes_with_order_and_length_and_sign_of_zero() -> None:
    vectors = [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0, 0.0], [1.0, 2.0, -0.0], []]
    assert len({weight_hash(floats(vector)) for vector in vectors}) == len(vectors)


def test_hash_depends_on_the_values_only() -> None:
    weights = np.random.default_rng(7).normal(size=(10, 2)).astype(np.float32)
    column = weights[:, 0]  # not contiguous
    assert weight_hash(column) == weight_hash(column.copy())
