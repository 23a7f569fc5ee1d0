"""Proximal policy optimisation: several passes over each segment, held near the policy that played it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.learning.actor_critic import ActorCritic, values_of
from dba3c.learning.returns import generalised_advantages
from dba3c.learning.shards import Passes
from dba3c.types import Array, Batch, Clock, Columns, Evaluate, Outputs, Spaces, Update

SCALE_RATE = 0.005  # at which the scale of the advantages follows them, per update
MOST_GROWTH = 2.0  # of the scale while one segment is learned from, unless its advantages are larger than that


class PPO:
    """Acts as A3C does; learns from clipped ratios, with advantages in units of their usual size."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self._actor = actor = ActorCritic(config, spaces)
        self.heads = actor.heads
        self.noise_size = actor.noise_size
        self.exploration = actor.exploration
        self.act = actor.act
        self.greedy = actor.greedy
        self._value_weight = config.value
        self._lambda = config.gae_lambda
        self._ratio_clip = config.ratio_clip
        self._passes = Passes(config.passes, config.minibatches)
        self._scale = 1.0  # what advantages are divided by
        self._scale_used = 1.0  # for those of the newest segment

    def begin(self, weights: tf.Variable) -> None: ...

    def columns(self, batch: Batch, clock: Clock, _evaluate: Evaluate) -> Columns:
        """Give actions, λ-returns, scaled advantages and the log-probabilities that the actions had when chosen."""
        self._actor.bonus.follow(clock)
        self._scale_used = self._scale
        advantages = generalised_advantages(batch.rewards, batch.discounts, batch.values, self._lambda)
        return {
            "actions": batch.actions[:-1],
            "returns": advantages + batch.values[:-1],
            "advantages": advantages / advantages.dtype.type(self._scale),
            "old_log_probabilities": batch.log_probabilities,
        }

    def minibatches(self, count: int, seed: int, update: int, whole: bool = False) -> Iterator[Array | slice]:
        return self._passes.minibatches(count, seed, update, whole)

    def loss(
        self,
        outputs: Outputs,
        *,
        actions: tf.Tensor,
        returns: tf.Tensor,
        advantages: tf.Tensor,
        old_log_probabilities: tf.Tensor,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean of  −min(r·A, clip(r, 1 ± ε)·A) + c_v·(R − V)² − c_e·H(π)  with r = π(a) / π_old(a)."""
        policy = self._actor.policy(outputs)
        ratios = tf.exp(policy.log_probabilities(actions) - old_log_probabilities)  # [B]
        near = tf.clip_by_value(ratios, 1 - self._ratio_clip, 1 + self._ratio_clip)
        policy_loss = -tf.reduce_mean(tf.minimum(ratios * advantages, near * advantages))
        value_loss = self._value_weight * tf.reduce_mean(tf.square(returns - values_of(outputs)))
        entropy = tf.reduce_mean(policy.entropies())
        figures = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        figures["advantage_square"] = tf.reduce_mean(tf.square(advantages))
        return policy_loss + value_loss - self._actor.bonus.weight * entropy, figures

    def follow(self, update: Update, _clock: Clock, _weights: tf.Variable) -> None:
        """Let the scale follow the size of the advantages slowly, from the figures of the whole job.

        The updates from one segment all count the same advantages, which must not drive the scale beyond their size.
        """
        if update.applied:
            square = update.sums["advantage_square"] / update.samples
            most = self._scale_used * max(MOST_GROWTH, square**0.5)
            self._scale = min(self._scale * (1 + SCALE_RATE * (square - 1)), max(self._scale, most))

    def state(self) -> dict[str, Array]:
        return {"advantage_scale": np.array(self._scale)}

    def restore(self, state: dict[str, Array]) -> None:
        self._scale = self._scale_used = float(state.get("advantage_scale", 1.0))
