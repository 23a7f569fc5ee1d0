"""Q-learning with a target network: one-step Q, one-step Sarsa and n-step Q of the A3C paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Algorithm
from dba3c.learning.exploration import EpsilonGreedy
from dba3c.learning.returns import n_step_returns
from dba3c.types import Acted, Array, Batch, Clock, Columns, Evaluate, Head, Outputs, Spaces, Update


class Q:
    """Learns what each action is worth, from rewards and from what an older copy of the network says comes after."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self._actions = count_actions(spaces)
        self.heads = {"q": Head(self._actions, gain=0.01)}  # all actions start out about equally worthless
        self.noise_size = EpsilonGreedy.noise_size
        self._greedy = EpsilonGreedy(config)
        self._returns = config.returns
        self._weight = config.value
        self._target_every_steps = config.target_every_steps
        self._target: tf.Variable | None = None

    def begin(self, weights: tf.Variable) -> None:
        """Copy the first weights."""
        if self._target is None:
            self._target = tf.Variable(weights, trainable=False, name="target")
        else:
            self._target.assign(weights)

    def exploration(self, simulators: Array, clock: Clock) -> Array:
        return self._greedy.epsilons(simulators, clock)

    def act(self, outputs: Outputs, noise: tf.Tensor, exploration: tf.Tensor) -> Acted:
        actions, log_probabilities = self._greedy.act(outputs["q"], noise, exploration)
        return actions, log_probabilities, tf.reduce_max(outputs["q"], axis=1)

    def greedy(self, outputs: Outputs) -> tf.Tensor:
        return best(outputs["q"])

    def columns(self, batch: Batch, clock: Clock, evaluate: Evaluate) -> Columns:
        """Give the actions and what they should turn out to be worth."""
        self._greedy.follow(clock)
        return {"actions": batch.actions[:-1], "targets": self._targets(batch, evaluate)}

    def _targets(self, batch: Batch, evaluate: Evaluate) -> Array:
        """[T, B]: of one step, of one step with the action that was really taken next, or of the rest of the segment"""
        if self._returns == "n_step":
            bootstrap = self._after(batch.observations[-1:], evaluate).max(axis=2)[0]  # [B]
            return n_step_returns(batch.rewards, batch.discounts, bootstrap)
        after = self._after(batch.observations[1:], evaluate)  # [T, B, A]
        if self._returns == "sarsa":
            following = np.take_along_axis(after, batch.actions[1:, :, np.newaxis], axis=2)[:, :, 0]
        else:
            following = after.max(axis=2)
        return np.asarray(batch.rewards + batch.discounts * following)

    def _after(self, observations: Array, evaluate: Evaluate) -> Array:
        """What the target network says about the actions in later states: [T, B, …] → [T, B, A]."""
        assert self._target is not None
        flat = observations.reshape(-1, *observations.shape[2:])
        return evaluate(self._target, flat)["q"].reshape(*observations.shape[:2], self._actions)

    def minibatches(self, _count: int, _seed: int, _update: int, _whole: bool = False) -> Iterator[Array | slice]:
        """Take all time steps of all simulators together, once."""
        yield slice(None)

    def loss(
        self, outputs: Outputs, *, actions: tf.Tensor, targets: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean over the batch of  c·(y − Q(a))²."""
        worth = tf.gather(outputs["q"], actions, batch_dims=1)  # [B]
        errors = targets - worth
        value_loss = self._weight * tf.reduce_mean(tf.square(errors))
        figures = {
            "value_loss": value_loss,
            "q": tf.reduce_mean(worth),
            "td_error": tf.reduce_mean(tf.abs(errors)),
            "epsilon": self._greedy.mean + 0.0,
        }
        return value_loss, figures

    def follow(self, update: Update, clock: Clock, weights: tf.Variable) -> None:
        """Copy the weights into the target network where a multiple of its interval was reached or passed."""
        if crossed(self._target_every_steps, clock.steps - update.steps, clock.steps):
            self.begin(weights)

    def state(self) -> dict[str, Array]:
        return {} if self._target is None else {"target": self._target.numpy()}

    def restore(self, state: dict[str, Array]) -> None:
        if "target" in state:
            self.begin(state["target"])


def count_actions(spaces: Spaces) -> int:
    actions = getattr(spaces.action, "n", None)
    if actions is None:
        raise ConfigError("algorithm.name=q: chooses one of several actions, but this environment's are continuous")
    return int(actions)


def best(worths: tf.Tensor) -> tf.Tensor:
    return tf.argmax(worths, axis=1, output_type=tf.int32)


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a counter has reached or passed a multiple on its way."""
    return now // every > before // every
