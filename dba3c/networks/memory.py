"""Memory: an LSTM between the hidden layer and the heads, unrolled over whole segments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from keras import initializers, layers

FORGET_BIAS = 1.0  # at the start: what is remembered stays until learning says otherwise [Jozefowicz et al. 2015]


class Lstm(layers.Layer):
    """Cells that remember, within an episode. The memory of one simulator is h, what they put out, and then c."""

    def __init__(self, features: int, cells: int, init: Callable[[float], initializers.Initializer]) -> None:
        super().__init__(name="memory")
        self.cells = cells
        self.kernel = self.add_weight((features, 4 * cells), init(1.0), name="kernel")
        self.recurrent = self.add_weight((cells, 4 * cells), init(1.0), name="recurrent")
        self.bias = self.add_weight((4 * cells,), "zeros", name="bias")
        self.bias.assign(np.repeat([0.0, FORGET_BIAS, 0.0, 0.0], cells))

    def call(self, features: tf.Tensor, memory: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
        """Compute what is remembered after each step: [T·B, H], [B, 2·cells], [T, B] bool → [T·B, 2·cells]."""
        steps = tf.shape(begins)
        inputs = tf.matmul(features, self.kernel) + self.bias  # of all steps at once
        inputs = tf.reshape(inputs, [steps[0], steps[1], 4 * self.cells])
        states = unrolled(inputs, tf.convert_to_tensor(self.recurrent), memory, begins)
        return tf.reshape(states, [-1, 2 * self.cells])


def unrolled(inputs: tf.Tensor, recurrent: tf.Tensor, memory: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
    """Run the cells step by step; where an episode begins, they remember nothing.

    [T, B, 4·cells], [cells, 4·cells], [B, 2·cells] before the first step, [T, B] bool → [T, B, 2·cells]
    """

    def step(state: tf.Tensor, now: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        added, begin = now
        kept = tf.where(begin[:, tf.newaxis], tf.zeros_like(state), state)
        return after_one_step(added, recurrent, kept)

    if begins.shape[0] == 1:  # acting: a loop would take longer than its one step
        return step(memory, (inputs[0], begins[0]))[tf.newaxis]
    return tf.scan(step, (inputs, begins), memory)


def after_one_step(inputs: tf.Tensor, recurrent: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """c ← σ(f)·c + σ(i)·tanh(g),  h ← σ(o)·tanh(c)  with  (i, f, g, o) = inputs + h·recurrent.  → [B, 2·cells]"""
    h, c = tf.split(state, 2, axis=1)
    i, f, g, o = tf.split(inputs + tf.matmul(h, recurrent), 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.concat([tf.sigmoid(o) * tf.tanh(c), c], axis=1)
