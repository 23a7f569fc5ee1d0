"""Networks as pure functions of one flat weight vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf
from keras import layers

from dba3c.config import names
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Model
from dba3c.networks.flat import TensorLayout, pack
from dba3c.networks.torsos import Torso
from dba3c.seeds import weight_seeds
from dba3c.types import Array, Head, Outputs, Spaces

LEAST_VARIANCE = 1e-4  # is added to an observation's own, so that one of a single colour stays finite

Forward = Callable[
    [tf.Tensor, tf.Tensor], Outputs
]  # weights [P], observations [B, …] → outputs by head, [B, size] each


class Network(NamedTuple):
    """A network as a pure function of its flat weights."""

    layout: TensorLayout
    initial: Array  # [P]
    multiply_adds: list[int]  # of each layer with weights, for one observation, in the order of the layers
    forward: Forward


def build(config: Model, spaces: Spaces, heads: dict[str, Head], seed: int) -> Network:
    """Build a network for channel-first pictures; the same seed gives the same weights on every rank."""
    channels, height, width = spaces.observation.shape
    torso: Torso = names.find("model.torso", config.torso)(config.hidden, weight_seeds(seed))
    inputs = keras.Input((height, width, channels))
    features = inputs
    try:
        for layer in torso.layers:
            features = layer(features)
    except ValueError:
        raise ConfigError(
            f"model.torso={config.torso}: its convolutions are too large for observations of {height}×{width} pixels;"
            " choose another, such as nips, or larger observations"
        ) from None
    outputs = [
        layers.Dense(head.size, kernel_initializer=torso.head_init(head.gain), name=name)(features)
        for name, head in heads.items()
    ]
    model = keras.Model(inputs, outputs)
    weights = model.trainable_variables
    layout = TensorLayout(tuple(w.path for w in weights), tuple(tuple(w.shape) for w in weights))

    def forward(vector: tf.Tensor, observations: tf.Tensor) -> Outputs:
        pixels = tf.cast(observations, tf.float32) / 255.0
        if config.standardise:
            pixels = standardised(pixels)
        pixels = tf.transpose(pixels, [0, 2, 3, 1])  # [B, H, W, C]
        tensors, _ = model.stateless_call(layout.unpack(vector), [], pixels)
        return dict(zip(heads, tensors, strict=True))

    return Network(layout, pack([w.numpy() for w in weights]), multiply_adds(model), forward)


def standardised(pixels: tf.Tensor) -> tf.Tensor:
    """Standardise the pixels of each observation: a bright background, as in Pong, hides nothing."""
    mean, variance = tf.nn.moments(pixels, [1, 2, 3], keepdims=True)
    return (pixels - mean) * tf.math.rsqrt(variance + LEAST_VARIANCE)


def multiply_adds(model: keras.Model) -> list[int]:
    """Count the uses of each kernel: once at each place of its layer's output."""
    places = [(layer, math.prod(layer.output.shape[1:-1])) for layer in model.layers if layer.trainable_variables]
    return [count * math.prod(layer.kernel.shape) for layer, count in places]
