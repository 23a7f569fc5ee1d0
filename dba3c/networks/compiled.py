"""Compiled functions of NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dba3c.types import Array


def compiled(function: Callable[..., Any], *signature: tf.TensorSpec) -> Callable[..., Any]:
    """Make a graph of `function` that is traced at its first call.

    tf.function inspects its arguments in Python at every call; its one concrete function, given tensors, need not.
    That saves 0.3 ms per call: a seventh of a prediction for 16 simulators.
    """
    trace = functools.cache(tf.function(function, input_signature=signature).get_concrete_function)

    def call(*arguments: Array | float | tf.Tensor) -> Any:
        tensors = (
            value if isinstance(value, tf.Tensor) else tf.constant(value, spec.dtype)  # tf.is_tensor would cost 8 µs
            for value, spec in zip(arguments, signature, strict=True)
        )
        return trace()(*tensors)

    return call
