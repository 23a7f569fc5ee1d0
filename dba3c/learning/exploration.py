"""What keeps an agent trying: a bonus for the entropy of its policy, or actions at random."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.config.values import Schedule, share
from dba3c.types import Array, Clock


class EntropyBonus:
    """The weight of the entropy in the loss, which may fall while training proceeds."""

    def __init__(self, first: float, schedule: Schedule) -> None:
        self._first = first
        self._schedule = schedule
        self.weight = tf.Variable(first, trainable=False)  # read by the compiled loss at every call

    def follow(self, clock: Clock) -> None:
        self.weight.assign(self._first * share(self._schedule, clock.done))


def no_exploration(simulators: Array) -> Array:
    """Leave the choice of actions to the policy: [B] → [B, 0]."""
    return np.empty((len(simulators), 0), np.float32)


class EpsilonGreedy:
    """Takes the best action or, with probability ε, any. Each simulator has a final ε of its own.

    Simulators take the final values in turn, by their numbers in the whole job: so a few have them all.
    """

    noise_size = 2  # random numbers per action: whether to explore, and how

    def __init__(self, config: Algorithm) -> None:
        self._finals = np.array(config.epsilons, np.float64)
        self._steps = config.epsilon_steps
        self._updates = config.epsilon_updates
        self.mean = tf.Variable(1.0, trainable=False)  # over the simulators; read by the compiled loss at every call

    def epsilons(self, simulators: Array, clock: Clock) -> Array:
        """Compute ε of each simulator, which falls from 1 in a straight line: [B] → [B, 1]."""
        done = min(1.0, clock.updates / self._updates if self._updates else clock.steps / self._steps)
        finals = self._finals[simulators % len(self._finals)]
        return np.array(1 + done * (finals - 1), np.float32)[:, np.newaxis]

    def follow(self, clock: Clock) -> None:
        self.mean.assign(self.epsilons(np.arange(len(self._finals)), clock).mean())

    @staticmethod
    def act(worths: tf.Tensor, noise: tf.Tensor, epsilons: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Choose by what the actions are worth; return the actions and their log-probabilities.

        [B, A], [B, 2] in [0, 1), [B, 1] → [B], [B]
        """
        count = worths.shape[1]
        best = tf.argmax(worths, axis=1, output_type=tf.int32)
        other = tf.minimum(tf.cast(noise[:, 1] * count, tf.int32), count - 1)
        epsilon = epsilons[:, 0]
        actions = tf.where(noise[:, 0] < epsilon, other, best)
        probabilities = epsilon / count + tf.where(actions == best, 1 - epsilon, 0.0)
        return actions, tf.math.log(probabilities)
