"""Advantage actor-critic: policy, value and entropy terms."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.learning.exploration import EntropyBonus, no_exploration
from dba3c.learning.returns import n_step_returns
from dba3c.networks.distributions import Softmax
from dba3c.types import Acted, Array, Batch, Clock, Columns, Evaluate, Head, Outputs, Spaces, Update


class A3C:
    """Learns once from each batch; every return is bootstrapped at the end of its segment."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self.heads = actor_critic_heads(spaces)
        self.noise_size = Softmax.noise_size
        self._value_weight = config.value
        self._bonus = EntropyBonus(config.entropy, config.entropy_schedule)

    def begin(self, weights: tf.Variable) -> None: ...

    def exploration(self, simulators: Array, _clock: Clock) -> Array:
        return no_exploration(simulators)

    def act(self, outputs: Outputs, noise: tf.Tensor, _exploration: tf.Tensor) -> Acted:
        return *Softmax.of(outputs).sample(noise), values_of(outputs)

    def greedy(self, outputs: Outputs) -> tf.Tensor:
        return Softmax.of(outputs).mode()

    def columns(self, batch: Batch, clock: Clock, _evaluate: Evaluate) -> Columns:
        """Give the actions and their n-step returns; what follows is learned with the entropy bonus of this moment."""
        self._bonus.follow(clock)
        returns = n_step_returns(batch.rewards, batch.discounts, batch.values[-1])
        return {"actions": batch.actions[:-1], "returns": returns}

    def minibatches(self, _count: int, _seed: int, _update: int, _whole: bool = False) -> Iterator[Array | slice]:
        """Take all time steps of all simulators together, once."""
        yield slice(None)

    def loss(
        self, outputs: Outputs, *, actions: tf.Tensor, returns: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean over the batch of  −log π(a)·(R − V) + c_v·(R − V)² − c_e·H(π)  with log x = ln(x + 1e-6)."""
        policy = Softmax.of(outputs)
        advantages = returns - values_of(outputs)  # [B]
        policy_loss = -tf.reduce_mean(policy.log_probabilities(actions) * tf.stop_gradient(advantages))
        value_loss = self._value_weight * tf.reduce_mean(tf.square(advantages))
        entropy = tf.reduce_mean(policy.entropies())
        loss = policy_loss + value_loss - self._bonus.weight * entropy
        return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}

    def follow(self, update: Update, clock: Clock, weights: tf.Variable) -> None: ...

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None: ...


def actor_critic_heads(spaces: Spaces) -> dict[str, Head]:
    return Softmax.heads(spaces) | {"value": Head(1)}


def values_of(outputs: Outputs) -> tf.Tensor:
    return tf.squeeze(outputs["value"], 1)  # [B]
