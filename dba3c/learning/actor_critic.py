"""What actor-critics share, whatever they minimise: a policy that acts, a value, and a bonus for entropy."""

from __future__ import annotations

import tensorflow as tf

from dba3c.config.schema import Algorithm
from dba3c.learning.exploration import EntropyBonus, no_exploration
from dba3c.networks.distributions import Distribution, family
from dba3c.types import Acted, Array, Clock, Head, Outputs, Spaces


class ActorCritic:
    """Draws actions from the policy: a choice, or a normal distribution where actions are vectors."""

    def __init__(self, config: Algorithm, spaces: Spaces) -> None:
        self._family = family(spaces, config.variance)
        self.heads = self._family.heads | {"value": Head(1)}
        self.noise_size = self._family.noise_size
        self.bonus = EntropyBonus(config.entropy, config.entropy_schedule)

    def exploration(self, simulators: Array, _clock: Clock) -> Array:
        return no_exploration(simulators)

    def act(self, outputs: Outputs, noise: tf.Tensor, _exploration: tf.Tensor) -> Acted:
        return *self.policy(outputs).sample(noise), values_of(outputs)

    def greedy(self, outputs: Outputs) -> tf.Tensor:
        return self.policy(outputs).mode()

    def policy(self, outputs: Outputs) -> Distribution:
        return self._family.of(outputs)


def values_of(outputs: Outputs) -> tf.Tensor:
    return tf.squeeze(outputs["value"], 1)  # [B]
