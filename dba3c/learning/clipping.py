"""Clipping of gradients: what algorithm.clip and algorithm.clip_norm mean, and where each kind is done."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.networks.flat import TensorLayout

Clip = Callable[[tf.Tensor], tf.Tensor]  # [P] → [P]


def of_each_rank(config: Algorithm, layout: TensorLayout) -> Clip:
    """Clip a rank's own gradient, before it is averaged (algorithm.clip=tensor)."""
    if config.clip == "tensor":
        return lambda gradient: clip_tensors(gradient, layout, config.clip_norm)
    return unchanged


def limit_of_the_mean(config: Algorithm) -> float | None:
    """Tell the largest norm of the gradient that was averaged over the ranks (algorithm.clip=global)."""
    return config.clip_norm if config.clip == "global" else None


def unchanged(gradient: tf.Tensor) -> tf.Tensor:
    return gradient


def clip_tensors(gradient: tf.Tensor, layout: TensorLayout, average_norm: float) -> tf.Tensor:
    """Keep each tensor's L2 norm within average_norm × its number of elements, as the paper's program does."""
    limits = [average_norm * size for size in layout.sizes]
    parts = tf.split(gradient, layout.sizes)
    return tf.concat([tf.clip_by_norm(part, limit) for part, limit in zip(parts, limits, strict=True)], 0)


def norm_scale(gradient: tf.Tensor, most: float) -> tf.Tensor:
    """Compute the factor that keeps the L2 norm within `most`."""
    norm = tf.sqrt(2 * tf.nn.l2_loss(gradient))  # tf.clip_by_norm says the same in 0.45 ms more
    return tf.minimum(1.0, most / norm)
