"""A check that all ranks hold the same weights."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np

from dba3c.types import Array, Transport


class WeightsDifferError(Exception):
    """The ranks' weights differ; the message says whose."""


def weight_hash(vector: Array) -> str:
    """16 hex digits that change with any bit of the weights."""
    return hashlib.sha256(np.ascontiguousarray(vector, np.float32).tobytes()).hexdigest()[:16]


def check_weights(weights: Array, transport: Transport, update: int) -> None:
    """Raise WeightsDifferError if the ranks' weights differ, naming the ranks that differ from the majority."""
    hashes = transport.gather(weight_hash(weights))
    majority = Counter(hashes).most_common(1)[0][0]
    different = [rank for rank, value in enumerate(hashes) if value != majority]
    if different:
        raise WeightsDifferError(
            f"after update {update} the weights of ranks {different} differ from the others': {hashes}"
        )
