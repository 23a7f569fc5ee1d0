"""Advantage actor-critic: policy, value and entropy terms."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.learning.actor_critic import ActorCritic, values_of
from dba3c.learning.returns import n_step_returns
from dba3c.types import Array, Batch, Clock, Columns, Evaluate, Outputs, Spaces, Update


class A3C:
    """Learns once from each batch; every return is bootstrapped at the end of its segment."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self._actor = actor = ActorCritic(config, spaces)
        self.heads = actor.heads
        self.noise_size = actor.noise_size
        self.exploration = actor.exploration
        self.act = actor.act
        self.greedy = actor.greedy
        self._value_weight = config.value

    def begin(self, weights: tf.Variable) -> None: ...

    def columns(self, batch: Batch, clock: Clock, _evaluate: Evaluate) -> Columns:
        """Give the actions and their n-step returns; what follows is learned with the entropy bonus of this moment."""
        self._actor.bonus.follow(clock)
        returns = n_step_returns(batch.rewards, batch.discounts, batch.values[-1])
        return {"actions": batch.actions[:-1], "returns": returns}

    def minibatches(self, _count: int, _seed: int, _update: int, _whole: bool = False) -> Iterator[Array | slice]:
        """Take all time steps of all simulators together, once."""
        yield slice(None)

    def loss(
        self, outputs: Outputs, *, actions: tf.Tensor, returns: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean over the batch of  −log π(a)·(R − V) + c_v·(R − V)² − c_e·H(π)  with log x = ln(x + 1e-6)."""
        policy = self._actor.policy(outputs)
        advantages = returns - values_of(outputs)  # [B]
        policy_loss = -tf.reduce_mean(policy.log_probabilities(actions) * tf.stop_gradient(advantages))
        value_loss = self._value_weight * tf.reduce_mean(tf.square(advantages))
        entropy = tf.reduce_mean(policy.entropies())
        loss = policy_loss + value_loss - self._actor.bonus.weight * entropy
        return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}

    def follow(self, update: Update, clock: Clock, weights: tf.Variable) -> None: ...

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None: ...
