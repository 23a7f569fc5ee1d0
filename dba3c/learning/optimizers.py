"""Adam, RMSProp and SGD on the flat vector: each rule is a pure function, compiled together with its assignment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dba3c.config import names, schema
from dba3c.config.schedules import share
from dba3c.learning.clipping import Clip
from dba3c.networks.compiled import compiled
from dba3c.types import Array, Clock

Slots = dict[str, tf.Tensor]  # [P] each
Change = Callable[  # config, gradient, slots, rate → what to subtract, slots
    [schema.Optimizer, tf.Tensor, Slots, tf.Tensor], tuple[tf.Tensor, Slots]
]


class Rule(NamedTuple):
    """How a gradient changes the weights."""

    change: Change
    first: dict[str, float]  # values of its slots
    rate: Callable[[schema.Optimizer, float, int], float]  # config, scheduled rate, step t ≥ 1 → rate of this step


def adam(config: schema.Optimizer, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """Equations 5 and 6 of the paper with ε̂ beside the root, as TensorFlow has it; `rate` is η_t, bias-corrected."""
    m = config.beta1 * slots["m"] + (1 - config.beta1) * g
    v = config.beta2 * slots["v"] + (1 - config.beta2) * tf.square(g)
    return rate * m / (tf.sqrt(v) + config.epsilon), {"m": m, "v": v}


def adam_rate(config: schema.Optimizer, rate: float, t: int) -> float:
    """η_t of equation 5 at Adam's t-th step."""
    return rate * math.sqrt(1 - config.beta2**t) / (1 - config.beta1**t)


def rmsprop(config: schema.Optimizer, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """TensorFlow 1's form: ε inside the root, the mean square starts at 1."""
    mean_square = config.decay * slots["mean_square"] + (1 - config.decay) * tf.square(g)
    momentum = config.momentum * slots["momentum"] + rate * g / tf.sqrt(mean_square + config.epsilon)
    return momentum, {"mean_square": mean_square, "momentum": momentum}


def sgd(_config: schema.Optimizer, g: tf.Tensor, _slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    return rate * g, {}


def same_rate(_config: schema.Optimizer, rate: float, _t: int) -> float:
    return rate


ADAM = Rule(adam, {"m": 0.0, "v": 0.0}, adam_rate)
RMSPROP = Rule(rmsprop, {"mean_square": 1.0, "momentum": 0.0}, same_rate)
SGD = Rule(sgd, {}, same_rate)


def learning_rate(config: schema.Optimizer, done: float) -> float:
    """The scheduled rate when `done` (0 to 1) of the training is over."""
    return config.learning_rate * share(config.schedule, done)


class FlatOptimizer:
    """One rule, its slots and the weights that it changes."""

    def __init__(self, config: schema.Optimizer, weights: tf.Variable, clip: Clip) -> None:
        self._config = config
        self._weights = weights
        self._clip = clip
        self._rule: Rule = names.find("optimizer.name", config.name)
        self._slots = {
            name: tf.Variable(tf.fill(weights.shape, value), name=name) for name, value in self._rule.first.items()
        }
        self._steps = 0
        vector, scalar = tf.TensorSpec(weights.shape, tf.float32), tf.TensorSpec((), tf.float32)
        self._apply = compiled(self._apply_graph, vector, scalar)

    def apply(self, gradient: Array, clock: Clock) -> None:
        self._steps += 1
        rate = learning_rate(self._config, clock.done)
        self._apply(gradient, self._rule.rate(self._config, rate, self._steps))

    def _apply_graph(self, gradient: tf.Tensor, rate: tf.Tensor) -> None:
        slots = {name: slot.read_value() for name, slot in self._slots.items()}
        change, changed = self._rule.change(self._config, self._clip(gradient), slots, rate)
        self._weights.assign(self._weights - change)
        for name, value in changed.items():
            self._slots[name].assign(value)

    def state(self) -> dict[str, Array]:
        """Read the slots and then the count of steps, which shows whether a step came in between."""
        return {name: slot.numpy() for name, slot in self._slots.items()} | {"steps": np.int64(self._steps)}

    def restore(self, state: dict[str, Array]) -> None:
        self._steps = int(state["steps"])
        for name, slot in self._slots.items():
            slot.assign(state[name])
