"""All weights as one contiguous float32 vector: one message, one optimizer step, one hash, one array to save."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dba3c.types import Array


class TensorLayout(NamedTuple):
    """Where each tensor lies in the flat vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes]

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def unpack(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """The tensors of a flat vector; one split, whose gradient is one concat."""
        return [tf.reshape(part, shape) for part, shape in zip(tf.split(vector, self.sizes), self.shapes, strict=True)]


def pack(tensors: list[Array]) -> Array:
    """One flat vector from a list of arrays."""
    return np.concatenate([np.ravel(tensor) for tensor in tensors]).astype(np.float32)
