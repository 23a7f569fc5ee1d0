"""The hash of the weights, and the check that all ranks hold the same."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.comm.weight_check import WeightsDifferError, check_weights, weight_hash
from tests.fakes.loopback import Loopback


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
    assert len({weight_hash(np.array(vector, np.float32)) for vector in vectors}) == len(vectors)


def test_hash_depends_on_the_values_only() -> None:
    weights = np.random.default_rng(7).normal(size=(10, 2)).astype(np.float32)
    column = weights[:, 0]  # not contiguous
    assert weight_hash(column) == weight_hash(column.copy())


class ThreeRanks(Loopback):
    """Two other ranks with weights of their own."""

    def __init__(self, *others: str) -> None:
        self._others = others

    def gather(self, value):  # type: ignore[no-untyped-def]
        return [value, *self._others]


def test_ranks_that_differ_from_the_majority_are_named() -> None:
    weights = np.arange(5, dtype=np.float32)
    same, other = weight_hash(weights), weight_hash(weights + 1)
    check_weights(weights, ThreeRanks(same, same), 7)
    with pytest.raises(WeightsDifferError, match=r"after update 7 the weights of ranks \[2\] differ"):
        check_weights(weights, ThreeRanks(same, other), 7)
    with pytest.raises(WeightsDifferError, match=r"ranks \[0\]"):
        check_weights(weights, ThreeRanks(other, other), 7)
