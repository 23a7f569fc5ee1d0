"""Adam, RMSProp and SGD on the flat vector: each rule is a pure function, compiled together with its assignment."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from dba3c.config.schedules import share
from dba3c.config.schema import Optimizer as Config
from dba3c.networks.compiled import compiled
from dba3c.types import Array

Slots = dict[str, tf.Tensor]  # [P] each
Rule = Callable[
    [Config, tf.Tensor, Slots, tf.Tensor], tuple[tf.Tensor, Slots]
]  # config, gradient, slots, rate → what to subtract, slots


def adam(config: Config, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """Equations 5 and 6 of the paper with ε̂ beside the root, as TensorFlow has it; `rate` is η_t, bias-corrected."""
    m = config.beta1 * slots["m"] + (1 - config.beta1) * g
    v = config.beta2 * slots["v"] + (1 - config.beta2) * tf.square(g)
    return rate * m / (tf.sqrt(v) + config.epsilon), {"m": m, "v": v}


def rmsprop(config: Config, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """TensorFlow 1's form: ε inside the root, the mean square starts at 1."""
    mean_square = config.decay * slots["mean_square"] + (1 - config.decay) * tf.square(g)
    momentum = config.momentum * slots["momentum"] + rate * g / tf.sqrt(mean_square + config.epsilon)
    return momentum, {"mean_square": mean_square, "momentum": momentum}


def sgd(_config: Config, g: tf.Tensor, _slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    return rate * g, {}


RULES: dict[str, tuple[Rule, dict[str, float]]] = {  # the rule and its slots' first values
    "adam": (adam, {"m": 0.0, "v": 0.0}),
    "rmsprop": (rmsprop, {"mean_square": 1.0, "momentum": 0.0}),
    "sgd": (sgd, {}),
}


def learning_rate(config: Config, progress: float) -> float:
    """The scheduled rate when `progress` (0 to 1) of the training is done."""
    return config.learning_rate * share(config.schedule, progress)


def adam_rate(config: Config, rate: float, t: int) -> float:
    """η_t of equation 5 at Adam's t-th step, t ≥ 1."""
    return rate * math.sqrt(1 - config.beta2**t) / (1 - config.beta1**t)


class FlatOptimizer:
    """One rule, its slots and the weights that it changes."""

    def __init__(self, config: Config, weights: tf.Variable, global_clip: float | None) -> None:
        self._config, self._weights, self._global_clip = config, weights, global_clip
        self._rule, first = RULES[config.name]
        self._slots = {name: tf.Variable(tf.fill(weights.shape, value), name=name) for name, value in first.items()}
        self._steps = 0
        vector, scalar = tf.TensorSpec(weights.shape, tf.float32), tf.TensorSpec((), tf.float32)
        self._apply = compiled(self._apply_graph, vector, scalar)

    def apply(self, gradient: Array, progress: float) -> None:
        self._steps += 1
        rate = learning_rate(self._config, progress)
        if self._config.name == "adam":
            rate = adam_rate(self._config, rate, self._steps)
        self._apply(gradient, rate)

    def _apply_graph(self, gradient: tf.Tensor, rate: tf.Tensor) -> None:
        if self._global_clip is not None:
            norm = tf.sqrt(2 * tf.nn.l2_loss(gradient))  # tf.clip_by_norm says the same in 0.45 ms more
            gradient *= tf.minimum(1.0, self._global_clip / norm)
        change, slots = self._rule(self._config, gradient, {n: s.read_value() for n, s in self._slots.items()}, rate)
        self._weights.assign(self._weights - change)
        for name, value in slots.items():
            self._slots[name].assign(value)

    def state(self) -> dict[str, Array]:
        return {name: slot.numpy() for name, slot in self._slots.items()} | {"steps": np.int64(self._steps)}

    def restore(self, state: dict[str, Array]) -> None:
        self._steps = int(state["steps"])
        for name, slot in self._slots.items():
            slot.assign(state[name])
