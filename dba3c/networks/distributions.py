"""Policies as distributions over actions: what algorithms ask of them, whatever the actions are."""

from __future__ import annotations

import tensorflow as tf

from dba3c.types import Head, Outputs, Spaces

TINY = 1e-6  # inside every logarithm [code of the paper]


class Softmax:
    """A choice of one of n actions, by logits."""

    noise_size = 1  # random numbers per action

    def __init__(self, logits: tf.Tensor) -> None:
        self._logits = logits
        self._policy = tf.nn.softmax(logits)  # [B, A]
        self._log_policy = tf.math.log(self._policy + TINY)

    @staticmethod
    def heads(spaces: Spaces) -> dict[str, Head]:
        actions = int(spaces.action.n)  # type: ignore[union-attr]
        return {"policy": Head(actions, gain=0.01)}  # small logits: all actions are about equally likely

    @classmethod
    def of(cls, outputs: Outputs) -> Softmax:
        return cls(outputs["policy"])

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
