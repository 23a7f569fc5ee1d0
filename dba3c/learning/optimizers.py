"""The optimizers on the flat vector: each rule is a pure function, compiled together with its assignment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from dba3c.config import names, schema
from dba3c.config.values import share
from dba3c.learning.clipping import norm_scale
from dba3c.networks.compiled import compiled
from dba3c.types import Array, Clock

Slots = dict[str, tf.Tensor]  # [P] each
Change = Callable[  # config, gradient, slots, rate → what to subtract, slots
    [schema.Optimizer, tf.Tensor, Slots, tf.Tensor], tuple[tf.Tensor, Slots]
]


class Rule(NamedTuple):
    """How a gradient changes the weights."""

    change: Change
    first: Callable[[schema.Optimizer], dict[str, float]]  # values of its slots
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
    """The form of A3C and TensorFlow 1: ε inside the root."""
    mean_square = config.decay * slots["mean_square"] + (1 - config.decay) * tf.square(g)
    momentum = config.momentum * slots["momentum"] + rate * g / tf.sqrt(mean_square + config.epsilon)
    return momentum, {"mean_square": mean_square, "momentum": momentum}


def adagrad(config: schema.Optimizer, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """Divide by the root of the sum of all squares so far, which never falls; ε inside the root, as in rmsprop."""
    square_sum = slots["square_sum"] + tf.square(g)
    return rate * g / tf.sqrt(square_sum + config.epsilon), {"square_sum": square_sum}


def momentum_sgd(config: schema.Optimizer, g: tf.Tensor, slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """Equation S1 of the A3C paper: the direction is a mean of gradients, not their sum."""
    m = config.momentum * slots["m"] + (1 - config.momentum) * g
    return rate * m, {"m": m}


def sgd(_config: schema.Optimizer, g: tf.Tensor, _slots: Slots, rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    return rate * g, {}


def same_rate(_config: schema.Optimizer, rate: float, _t: int) -> float:
    return rate


ADAM = Rule(adam, lambda _config: {"m": 0.0, "v": 0.0}, adam_rate)
RMSPROP = Rule(rmsprop, lambda config: {"mean_square": config.mean_square, "momentum": 0.0}, same_rate)
ADAGRAD = Rule(adagrad, lambda config: {"square_sum": config.square_sum}, same_rate)
MOMENTUM_SGD = Rule(momentum_sgd, lambda _config: {"m": 0.0}, same_rate)
SGD = Rule(sgd, lambda _config: {}, same_rate)


def learning_rate(config: schema.Optimizer, done: float) -> float:
    """The scheduled rate when `done` (0 to 1) of the training is over."""
    return config.learning_rate * share(config.schedule, done)


class FlatOptimizer:
    """One rule, its slots and the weights that it changes."""

    def __init__(self, config: schema.Optimizer, weights: tf.Variable, largest_norm: float | None) -> None:
        self.size = int(weights.shape[0])
        self.shared = config.shared
        self._config = config
        self._weights = weights
        self._largest_norm = largest_norm
        self._rule: Rule = names.find("optimizer.name", config.name)
        self._slots = {
            name: tf.Variable(tf.fill(weights.shape, value), name=name)
            for name, value in self._rule.first(config).items()
        }
        self._steps = 0
        vector, scalar = tf.TensorSpec(weights.shape, tf.float32), tf.TensorSpec((), tf.float32)
        self._apply = compiled(self._clip_and_assign, vector, scalar)
        self._apply_scaled = compiled(self._assign, vector, scalar, scalar)
        self._scale = compiled(lambda gradient: norm_scale(gradient, largest_norm or math.inf), vector)
        self._change = compiled(self._scaled_change, vector, scalar, scalar, *[vector] * len(self._slots))

    def apply(self, gradient: Array, clock: Clock, scale: float | None = None) -> None:
        """Take one step; `scale` is given where the whole gradient, which the clipping needs, is somewhere else."""
        rate = self._rate(clock, self._steps)
        self._steps += 1
        if scale is None:
            self._apply(gradient, rate)
        else:
            self._apply_scaled(gradient, rate, scale)

    def scale(self, gradient: Array) -> float:
        """Compute the factor by which `apply` would clip a whole gradient."""
        return 1.0 if self._largest_norm is None else float(self._scale(gradient))

    def apply_to(
        self, weights: Array, slots: dict[str, Array], gradient: Array, clock: Clock, steps: int, scale: float
    ) -> None:
        """Take the step after so many others, in place, on weights and slots that are kept elsewhere."""
        change, changed = self._change(gradient, self._rate(clock, steps), scale, *map(slots.get, self._slots))
        weights -= change.numpy()
        for name, value in changed.items():
            slots[name][:] = value.numpy()

    def _rate(self, clock: Clock, steps: int) -> float:
        return self._rule.rate(self._config, learning_rate(self._config, clock.done), steps + 1)

    def part(self, where: slice) -> FlatOptimizer:
        """Make an optimizer for a slice of the weights, with copies of them and of their slots; it clips nothing."""
        weights = tf.Variable(self._weights[where], name="slice")
        made = FlatOptimizer(self._config, weights, None)
        made.restore({name: value if name == "steps" else value[where] for name, value in self.state().items()})
        return made

    def weights(self) -> Array:
        weights: Array = self._weights.numpy()
        return weights

    def load(self, weights: Array) -> None:
        self._weights.assign(weights)

    def _clip_and_assign(self, gradient: tf.Tensor, rate: tf.Tensor) -> None:
        limit = self._largest_norm
        self._assign(gradient, rate, None if limit is None else norm_scale(gradient, limit))

    def _assign(self, gradient: tf.Tensor, rate: tf.Tensor, scale: tf.Tensor | None) -> None:
        slots = [slot.read_value() for slot in self._slots.values()]
        change, changed = self._scaled_change(gradient, rate, scale, *slots)
        self._weights.assign(self._weights - change)
        for name, value in changed.items():
            self._slots[name].assign(value)

    def _scaled_change(
        self, gradient: tf.Tensor, rate: tf.Tensor, scale: tf.Tensor | None, *slots: tf.Tensor
    ) -> tuple[tf.Tensor, Slots]:
        clipped = gradient if scale is None else gradient * scale
        return self._rule.change(self._config, clipped, dict(zip(self._slots, slots, strict=True)), rate)

    def state(self) -> dict[str, Array]:
        """Read the slots and then the count of steps, which shows whether a step came in between."""
        return {name: slot.numpy() for name, slot in self._slots.items()} | {"steps": np.int64(self._steps)}

    def restore(self, state: dict[str, Array]) -> None:
        self._steps = int(state["steps"])
        for name, slot in self._slots.items():
            slot.assign(state[name])
