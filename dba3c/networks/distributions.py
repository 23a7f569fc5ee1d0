"""Policies as distributions over actions: what algorithms ask of them, whatever the actions are."""

from __future__ import annotations

import math
from typing import Protocol

import tensorflow as tf

from dba3c.types import Head, Outputs, Spaces

TINY = 1e-6  # inside every logarithm [code of the paper]
LEAST_NOISE = 2.0**-25  # half of the least random number above 0, which alone would become an infinite action
LEAST_VARIANCE = 1e-4  # is added to softplus: a policy that is sure of itself keeps a finite density


class Distribution(Protocol):
    """The policy in B states."""

    def sample(self, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]: ...  # [B, k] → actions, log-probabilities [B]
    def mode(self) -> tf.Tensor: ...  # the most likely actions
    def log_probabilities(self, actions: tf.Tensor) -> tf.Tensor: ...  # [B]
    def entropies(self) -> tf.Tensor: ...  # [B]


class Family(Protocol):
    """A kind of distribution: what it needs of a network, and how it is made of what the network puts out."""

    heads: dict[str, Head]
    noise_size: int  # random numbers per action

    def of(self, outputs: Outputs) -> Distribution: ...


class Choices:
    """The family of choices of one of n actions."""

    noise_size = 1

    def __init__(self, actions: int) -> None:
        self.heads = {"policy": Head(actions, gain=0.01)}  # small logits: all actions are about equally likely

    def of(self, outputs: Outputs) -> Softmax:
        return Softmax(outputs["policy"])


class Normals:
    """The family of normal distributions over vectors, with one variance for all numbers of a vector or for each."""

    def __init__(self, numbers: int, each: bool) -> None:
        self.noise_size = numbers
        self.heads = {"mean": Head(numbers, gain=0.01), "variance": Head(numbers if each else 1, gain=0.01)}

    def of(self, outputs: Outputs) -> Gaussian:
        return Gaussian(outputs["mean"], tf.nn.softplus(outputs["variance"]) + LEAST_VARIANCE)


def family(spaces: Spaces, variance: str) -> Family:
    """Choose the family for a space of actions; `variance` is algorithm.variance."""
    if spaces.action.shape:
        return Normals(spaces.action.shape[0], each=variance == "each")
    return Choices(int(spaces.action.n))  # type: ignore[union-attr]


class Softmax:
    """A choice of one of n actions, by logits."""

    def __init__(self, logits: tf.Tensor) -> None:
        self._logits = logits
        self._policy = tf.nn.softmax(logits)  # [B, A]
        self._log_policy = tf.math.log(self._policy + TINY)

    def sample(self, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Take the action whose part of the cumulated policy holds the noise in [0, 1); and its log-probability."""
        cumulated = tf.cumsum(self._policy, axis=1)  # [B, A]; its last column is 1 up to rounding
        passed = tf.cast(cumulated <= noise * cumulated[:, -1:], tf.int32)
        actions = tf.minimum(tf.reduce_sum(passed, axis=1), self._policy.shape[1] - 1)  # [B]
        return actions, tf.math.log(tf.gather(self._policy, actions, batch_dims=1) + TINY)  # [B], [B]

    def mode(self) -> tf.Tensor:
        """Take the most likely action."""
        return tf.argmax(self._logits, axis=1, output_type=tf.int32)

    def log_probabilities(self, actions: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._log_policy, actions, batch_dims=1)  # [B]

    def entropies(self) -> tf.Tensor:
        return -tf.reduce_sum(self._policy * self._log_policy, axis=1)  # [B]


class Gaussian:
    """Independent normal numbers around a mean. Actions are not bounded: environments clip what they are given."""

    def __init__(self, mean: tf.Tensor, variance: tf.Tensor) -> None:
        self._mean = mean  # [B, A]
        self._variance = variance  # [B, 1] or [B, A]

    def sample(self, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Take the actions at the quantiles that the noise in [0, 1) names; and their log-densities."""
        normal = tf.math.ndtri(tf.maximum(noise, LEAST_NOISE))  # [B, A]
        actions = self._mean + tf.sqrt(self._variance) * normal
        return actions, self.log_probabilities(actions)

    def mode(self) -> tf.Tensor:
        return self._mean

    def log_probabilities(self, actions: tf.Tensor) -> tf.Tensor:
        """Sum of  −½·((a − μ)²/σ² + ln 2πσ²)  over the numbers of an action."""
        distances = tf.square(actions - self._mean) / self._variance
        return -0.5 * tf.reduce_sum(distances + tf.math.log(2 * math.pi * self._variance), axis=1)  # [B]

    def entropies(self) -> tf.Tensor:
        """Sum of  ½·(ln 2πσ² + 1)  over the numbers of an action."""
        each = 0.5 * (tf.math.log(2 * math.pi * self._variance) + 1)
        return tf.reduce_sum(each + tf.zeros_like(self._mean), axis=1)  # [B]
