"""What keeps a policy trying: so far a bonus for its entropy."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from dba3c.config.schedules import Schedule, share
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
