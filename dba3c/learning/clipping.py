"""Gradients that are too large: how algorithm.clip shortens them, and which algorithm.outlier_deviations drops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.networks.flat import TensorLayout
from dba3c.types import Array, Batch, Gradient, Say

OUTLIER_RATE = 0.01  # at which mean and deviation follow the errors, per gradient [own; Gorila does not say]
OUTLIER_FIRST = 100  # gradients of a rank before any is dropped [own]
MOST_RANKS = 1024  # with statistics of their own

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


class Outliers:
    """Running mean and variance of the errors of each rank's gradients. Every rank follows those of all."""

    def __init__(self, deviations: float) -> None:
        self._deviations = deviations
        self.statistics = np.zeros((3, MOST_RANKS))  # gradients, mean and variance of their errors

    def limit(self, rank: int) -> float:
        """Say which error is an outlier; none is as long as too few are known."""
        count, mean, variance = self.statistics[:, rank % MOST_RANKS]
        return float(mean + self._deviations * np.sqrt(variance)) if count >= OUTLIER_FIRST else np.inf

    def follow(self, errors: Array) -> None:
        """Take note of the errors of an update, [ranks], 0 where a rank had none; outliers count as their limit."""
        for rank in np.flatnonzero(errors[:MOST_RANKS]).tolist():
            count, mean, variance = self.statistics[:, rank]
            rate = max(OUTLIER_RATE, 1 / (count + 1))
            change = min(float(errors[rank]), self.limit(rank)) - mean
            self.statistics[:, rank] = count + 1, mean + rate * change, (1 - rate) * (variance + rate * change**2)


class Learner(Protocol):
    def gradients(self, batch: Batch) -> Iterator[Gradient]: ...


class GuardedLearner:
    """Drops gradients whose errors are outliers: what was played counts, but the weights stay as they are."""

    def __init__(self, learner: Learner, outliers: Outliers, rank: Callable[[], int], say: Say) -> None:
        self._learner = learner
        self._outliers = outliers
        self._rank = rank
        self._say = say
        self._dropped = 0

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        for gradient in self._learner.gradients(batch):
            error = gradient.sums["td_error"] / max(gradient.samples, 1)
            limit = self._outliers.limit(self._rank())
            judged = gradient._replace(by_rank=gradient.by_rank | {"error": error})
            yield self._drop(judged, error, limit) if error > limit else add(judged, outliers=0.0)

    def _drop(self, gradient: Gradient, error: float, limit: float) -> Gradient:
        self._dropped += 1
        if self._dropped == 1:
            self._say(
                f"dropped a gradient with a mean error of {error:.3g}, above {limit:.3g}"
                " (algorithm.outlier_deviations); metrics.csv counts them as outliers"
            )
        nothing = gradient._replace(
            mean=np.zeros_like(gradient.mean), samples=0, sums=dict.fromkeys(gradient.sums, 0.0)
        )
        return add(nothing, outliers=1.0)


def add(gradient: Gradient, **sums: float) -> Gradient:
    return gradient._replace(sums=gradient.sums | sums)
