"""Proximal policy optimisation: several passes over each rollout, held near the policy that played it."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.learning.a3c import A3C, TINY
from dba3c.learning.returns import generalised_advantages
from dba3c.seeds import time_order
from dba3c.types import Array, Batch


class PPO(A3C):
    """Acts as A3C does; learns from clipped ratios."""

    vectors = 3  # returns, advantages, log-probabilities

    def __init__(self, config: Algorithm) -> None:
        super().__init__(config)
        self._lambda, self._ratio_clip = config.gae_lambda, config.ratio_clip
        self._passes, self._minibatches = config.passes, config.minibatches

    def targets(self, batch: Batch, advantage_scale: float) -> tuple[Array, ...]:
        """Actions, λ-returns, advantages in units of their usual size, log-probabilities when acting; [T, B] each."""
        advantages = generalised_advantages(batch.rewards, batch.discounts, batch.values, self._lambda)
        returns = advantages + batch.values[:-1]
        return batch.actions, returns, advantages / advantages.dtype.type(advantage_scale), batch.log_probabilities

    def parts(self, steps: int, seed: int, update: int) -> Iterator[Array | slice]:
        """Time steps, of all simulators, in each minibatch: the same in every layout of the job."""
        for number in range(self._passes):
            order = time_order(seed, update, number, steps)
            for first in range(self._minibatches):
                yield order[first :: self._minibatches]

    def loss(
        self, logits: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, *targets: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean of  −min(r·A, clip(r, 1 ± ε)·A) + c_v·(R − V)² − c_e·H(π)  with r = π(a) / π_old(a)."""
        returns, advantages, old_log_probabilities = targets
        policy = tf.nn.softmax(logits)  # [B, A]
        log_policy = tf.math.log(policy + TINY)
        ratios = tf.exp(tf.gather(log_policy, actions, batch_dims=1) - old_log_probabilities)  # [B]
        near = tf.clip_by_value(ratios, 1 - self._ratio_clip, 1 + self._ratio_clip)
        policy_loss = -tf.reduce_mean(tf.minimum(ratios * advantages, near * advantages))
        value_loss = self._value_weight * tf.reduce_mean(tf.square(returns - values))
        entropy = -tf.reduce_mean(tf.reduce_sum(policy * log_policy, axis=1))
        figures = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        figures["advantage_square"] = tf.reduce_mean(tf.square(advantages))
        return policy_loss + value_loss - self._entropy_weight * entropy, figures
