"""Networks as pure functions of one flat weight vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf
from keras import layers

from dba3c.config.schema import Model
from dba3c.networks.flat import Layout, pack
from dba3c.networks.torsos import TORSOS
from dba3c.seeds import weight_seeds
from dba3c.types import Array

DARK = 1e-4  # variance that is added to an observation's own: one of a single colour stays finite


# weights [P], observations [B, channels, height, width] → logits [B, A], values [B]
Forward = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


class Network(NamedTuple):
    """A network as a pure function of its flat weights."""

    layout: Layout
    initial: Array  # [P]
    multiply_adds: list[int]  # of each layer with weights, for one observation, in the order of the layers
    forward: Forward


def build(config: Model, observation_shape: tuple[int, int, int], n_actions: int, seed: int) -> Network:
    """A network for channel-first uint8 observations; the same seed gives the same weights on every rank."""
    channels, height, width = observation_shape
    parts = TORSOS[config.torso](config.hidden, weight_seeds(seed))
    inputs = keras.Input((height, width, channels))
    features = inputs
    for layer in parts.layers:
        features = layer(features)
    policy = layers.Dense(n_actions, kernel_initializer=parts.policy_init, name="policy")(features)
    value = layers.Dense(1, kernel_initializer=parts.value_init, name="value")(features)
    model = keras.Model(inputs, [policy, value])
    weights = model.trainable_variables
    layout = Layout(tuple(w.path for w in weights), tuple(tuple(w.shape) for w in weights))

    def forward(vector: tf.Tensor, observations: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pixels = tf.cast(observations, tf.float32) / 255.0
        if config.standardise:
            pixels = standardised(pixels)
        pixels = tf.transpose(pixels, [0, 2, 3, 1])  # [B, H, W, C]
        (logits, values), _ = model.stateless_call(layout.unpack(vector), [], pixels)
        return logits, tf.squeeze(values, 1)

    return Network(layout, pack([w.numpy() for w in weights]), multiply_adds(model), forward)


def standardised(pixels: tf.Tensor) -> tf.Tensor:
    """Each observation less its mean, over its standard deviation: a bright background, as in Pong, hides nothing."""
    mean, variance = tf.nn.moments(pixels, [1, 2, 3], keepdims=True)
    return (pixels - mean) * tf.math.rsqrt(variance + DARK)


def multiply_adds(model: keras.Model) -> list[int]:
    """A kernel is used once at each place of its layer's output."""
    places = [(layer, math.prod(layer.output.shape[1:-1])) for layer in model.layers if layer.trainable_variables]
    return [count * math.prod(layer.kernel.shape) for layer, count in places]
