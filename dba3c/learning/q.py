"""Q-learning with a target network: one-step Q, Sarsa and n-step Q of the A3C paper, and Q(λ) in several passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Algorithm
from dba3c.learning.clipping import Outliers
from dba3c.learning.exploration import EpsilonGreedy
from dba3c.learning.returns import generalised_advantages, n_step_returns
from dba3c.learning.shards import Passes
from dba3c.types import Acted, Array, Batch, Clock, Columns, Evaluate, Head, Outputs, Spaces, Update


class Q:
    """Learns what each action is worth, from rewards and from what an older copy of the network says comes after."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self._actions = count_actions(spaces)
        self.heads = {"q": Head(self._actions, gain=0.01)}  # all actions start out about equally worthless
        self.noise_size = EpsilonGreedy.noise_size
        self._greedy = EpsilonGreedy(config)
        self._returns = config.returns
        self._lambda = config.gae_lambda
        self._passes = Passes(config.passes, config.minibatches) if config.returns == "lambda" else Passes(1, 1)
        self._weight = config.value
        self._error_clip = config.error_clip
        self._double = config.double
        self._target_every_steps = config.target_every_steps
        self._target_every_updates = config.target_every_updates
        self.outliers = Outliers(config.outlier_deviations) if config.outlier_deviations else None
        self._weights: tf.Variable | None = None
        self._target: tf.Variable | None = None

    def begin(self, weights: tf.Variable) -> None:
        """Copy the first weights."""
        self._weights = weights
        self._copy(weights)

    def _copy(self, weights: tf.Variable | Array) -> None:
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
        """Compute y of each step, [T, B], by one of the four rules."""
        if self._returns == "n_step":
            return n_step_returns(batch.rewards, batch.discounts, self._best(batch.observations[-1:], evaluate)[0])
        if self._returns == "lambda":
            best = self._best(batch.observations, evaluate)  # [T + 1, B]
            return best[:-1] + generalised_advantages(batch.rewards, batch.discounts, best, self._lambda)
        after = batch.observations[1:]
        if self._returns == "sarsa":
            following = chosen(self._worths(self._target, after, evaluate), batch.actions[1:])
        else:
            following = self._best(after, evaluate)
        return np.asarray(batch.rewards + batch.discounts * following)

    def _best(self, observations: Array, evaluate: Evaluate) -> Array:
        """What the best action is worth to the target network, or the newest weights' best action: [T, B]."""
        worths = self._worths(self._target, observations, evaluate)
        if not self._double:
            return np.asarray(worths.max(axis=2))
        return chosen(worths, self._worths(self._weights, observations, evaluate).argmax(axis=2))

    def _worths(self, weights: tf.Variable | None, observations: Array, evaluate: Evaluate) -> Array:
        """What each action is worth: [T, B, …] → [T, B, A]."""
        assert weights is not None
        flat = observations.reshape(-1, *observations.shape[2:])
        return evaluate(weights, flat)["q"].reshape(*observations.shape[:2], self._actions)

    def minibatches(self, count: int, seed: int, update: int, whole: bool = False) -> Iterator[Array | slice]:
        return self._passes.minibatches(count, seed, update, whole)

    def loss(
        self, outputs: Outputs, *, actions: tf.Tensor, targets: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Mean over the batch of  c·(y − Q(a))², or of what has the same gradient with the error clipped."""
        worth = tf.gather(outputs["q"], actions, batch_dims=1)  # [B]
        errors = targets - worth
        squares = clipped_squares(errors, self._error_clip) if self._error_clip else tf.square(errors)
        value_loss = self._weight * tf.reduce_mean(squares)
        figures = {
            "value_loss": value_loss,
            "q": tf.reduce_mean(worth),
            "td_error": tf.reduce_mean(tf.abs(errors)),
            "epsilon": self._greedy.mean + 0.0,
        }
        return value_loss, figures

    def follow(self, update: Update, clock: Clock, weights: tf.Variable) -> None:
        """Copy the weights into the target network where a multiple of its interval was reached or passed."""
        every, now, passed = self._target_every_steps, clock.steps, update.steps
        if self._target_every_updates:
            every, now, passed = self._target_every_updates, clock.updates, 1
        if crossed(every, now - passed, now):
            self._copy(weights)
        if self.outliers is not None:
            self.outliers.follow(update.by_rank["error"])

    def state(self) -> dict[str, Array]:
        outliers = {} if self.outliers is None else {"outliers": self.outliers.statistics.copy()}
        return outliers if self._target is None else outliers | {"target": self._target.numpy()}

    def restore(self, state: dict[str, Array]) -> None:
        if "target" in state:
            self._copy(state["target"])
        if self.outliers is not None and "outliers" in state:
            self.outliers.statistics[:] = state["outliers"]


def count_actions(spaces: Spaces) -> int:
    actions = getattr(spaces.action, "n", None)
    if actions is None:
        raise ConfigError("algorithm.name=q: chooses one of several actions, but this environment's are continuous")
    return int(actions)


def best(worths: tf.Tensor) -> tf.Tensor:
    return tf.argmax(worths, axis=1, output_type=tf.int32)


def chosen(worths: Array, actions: Array) -> Array:
    """Pick what some actions are worth: [T, B, A], [T, B] → [T, B]."""
    return np.take_along_axis(worths, actions[:, :, np.newaxis], axis=2)[:, :, 0]


def clipped_squares(errors: tf.Tensor, limit: float) -> tf.Tensor:
    """e² where |e| ≤ limit, and beyond it a straight line of the slope there."""
    sizes = tf.abs(errors)
    near = tf.minimum(sizes, limit)
    return near * (2 * sizes - near)


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a counter has reached or passed a multiple on its way."""
    return now // every > before // every
