"""Advantage actor-critic: sampled or greedy actions; policy, value and entropy terms."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from dba3c.config.schedules import share
from dba3c.config.schema import Algorithm
from dba3c.learning.returns import n_step_returns
from dba3c.types import Array, Batch

TINY = 1e-6  # inside every logarithm [code of the paper]


class A3C:
    vectors = 1  # inputs of the loss besides the network's outputs and the actions: the returns

    def __init__(self, config: Algorithm) -> None:
        self._value_weight = config.value
        self._entropy, self._entropy_schedule = config.entropy, config.entropy_schedule
        self._entropy_weight = tf.Variable(config.entropy, trainable=False)  # the compiled loss reads it anew

    def anneal(self, progress: float) -> None:
        """What follows is learned when `progress` (0 to 1) of the training is done."""
        self._entropy_weight.assign(self._entropy * share(self._entropy_schedule, progress))

    def act(self, logits: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The action whose part of the cumulated policy holds the noise in [0, 1), and its log-probability."""
        policy = tf.nn.softmax(logits)  # [B, A]
        cumulated = tf.cumsum(policy, axis=1)  # its last column is 1 up to rounding
        passed = tf.cast(cumulated <= noise[:, tf.newaxis] * cumulated[:, -1:], tf.int32)
        actions = tf.minimum(tf.reduce_sum(passed, axis=1), logits.shape[1] - 1)  # [B]
        return actions, tf.math.log(tf.gather(policy, actions, batch_dims=1) + TINY)  # [B], [B]

    def targets(self, batch: Batch, _advantage_scale: float) -> tuple[Array, ...]:
        """What the loss needs besides the network's outputs: actions and returns, [T, B] each."""
        return batch.actions, n_step_returns(batch.rewards, batch.discounts, batch.values[-1])

    def parts(self, _steps: int, _seed: int, _update: int) -> Iterator[Array | slice]:
        """Time steps that are learned from together, in turn: here all of them, once."""
        yield slice(None)

    def loss(
        self, logits: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, *targets: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean over the batch of  −log π(a)·(R − V) + c_v·(R − V)² − c_e·H(π)  with log x = ln(x + 1e-6)."""
        (returns,) = targets
        policy = tf.nn.softmax(logits)  # [B, A]
        log_policy = tf.math.log(policy + TINY)
        advantages = returns - values  # [B]
        chosen = tf.gather(log_policy, actions, batch_dims=1)
        policy_loss = -tf.reduce_mean(chosen * tf.stop_gradient(advantages))
        value_loss = self._value_weight * tf.reduce_mean(tf.square(advantages))
        entropy = -tf.reduce_mean(tf.reduce_sum(policy * log_policy, axis=1))
        loss = policy_loss + value_loss - self._entropy_weight * entropy
        return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
