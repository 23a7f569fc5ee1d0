"""Policy and value networks: torsos {ba3c, ba3c_linear, nips, nature} and their heads, on one flat weight vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf
from keras import initializers, layers

from dba3c.flat import Layout, pack
from dba3c.types import Array

Initializer = Callable[..., "initializers.Initializer"]  # takes `seed`, which differs from tensor to tensor


class Torso(NamedTuple):
    """Layers up to the hidden units, and how the heads on top of them start."""

    layers: list[layers.Layer]
    policy_init: initializers.Initializer
    value_init: initializers.Initializer


class Network(NamedTuple):
    """A network as a pure function of its flat weights."""

    layout: Layout
    initial: Array  # [P]
    forward: Callable[
        [tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]
    ]  # weights, observations → logits [B, A], values [B]


class PadChannels(layers.Layer):
    """Zero channels up to `channels`: the paper's program feeds 16, and Table 2 counts their weights."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def call(self, x: tf.Tensor) -> tf.Tensor:
        # Not tf.pad: TensorFlow's oneDNN rewriter folds it into the convolution as if it padded rows and columns.
        return tf.concat([x, tf.zeros_like(x[..., : self.channels - x.shape[-1]])], axis=-1)

    def compute_output_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*shape[:-1], self.channels)


def unit_scaling(seed: int) -> initializers.Initializer:
    """Uniform ±1.43·√(3 / fan-in), the rule of the paper's program for fully connected layers."""
    return initializers.VarianceScaling(1.43**2, mode="fan_in", distribution="uniform", seed=seed)


def ba3c_convolutions(seed: int) -> list[layers.Layer]:
    """84×84×16 → 5×5×64: four convolutions without bias, truncated normal 0.03, and three poolings."""

    def conv(index: int, filters: int, kernel: int) -> layers.Layer:
        init = initializers.TruncatedNormal(stddev=0.03, seed=seed + index)
        return layers.Conv2D(
            filters, kernel, activation="relu", use_bias=False, kernel_initializer=init, name=f"conv{index}"
        )

    convolutions = [conv(0, 32, 5), conv(1, 32, 5), conv(2, 64, 5)]
    pooled = [layer for convolution in convolutions for layer in (convolution, layers.MaxPool2D())]
    return [PadChannels(16), *pooled, conv(3, 64, 3)]


def ba3c(hidden: int, seed: int) -> Torso:
    """The network of the paper's Table 2: a hidden layer with bias and ReLU."""
    dense = layers.Dense(hidden, activation="relu", kernel_initializer=unit_scaling(seed + 4), name="hidden")
    return Torso([*ba3c_convolutions(seed), layers.Flatten(), dense], unit_scaling(seed + 5), unit_scaling(seed + 6))


def ba3c_linear(hidden: int, seed: int) -> Torso:
    """The network of the paper's program: its hidden layer has neither bias nor activation."""
    dense = layers.Dense(hidden, use_bias=False, kernel_initializer=unit_scaling(seed + 4), name="hidden")
    return Torso([*ba3c_convolutions(seed), layers.Flatten(), dense], unit_scaling(seed + 5), unit_scaling(seed + 6))


def orthogonal_torso(convolutions: list[tuple[int, int, int]], hidden: int, seed: int) -> Torso:
    """(filters, kernel, stride) convolutions and a hidden layer; orthogonal start, small policy logits."""
    stack: list[layers.Layer] = []
    for index, (filters, kernel, stride) in enumerate(convolutions):
        init = initializers.Orthogonal(2**0.5, seed=seed + index)
        stack.append(
            layers.Conv2D(filters, kernel, stride, activation="relu", kernel_initializer=init, name=f"conv{index}")
        )
    init = initializers.Orthogonal(2**0.5, seed=seed + len(stack))
    dense = layers.Dense(hidden, activation="relu", kernel_initializer=init, name="hidden")
    policy_init = initializers.Orthogonal(0.01, seed=seed + len(stack) + 1)
    value_init = initializers.Orthogonal(1.0, seed=seed + len(stack) + 2)
    return Torso([*stack, layers.Flatten(), dense], policy_init, value_init)


def nips(hidden: int, seed: int) -> Torso:
    """The convolutions of Mnih et al. 2013."""
    return orthogonal_torso([(16, 8, 4), (32, 4, 2)], hidden, seed)


def nature(hidden: int, seed: int) -> Torso:
    """The convolutions of Mnih et al. 2015."""
    return orthogonal_torso([(32, 8, 4), (64, 4, 2), (64, 3, 1)], hidden, seed)


TORSOS: dict[str, Callable[[int, int], Torso]] = {
    "ba3c": ba3c,
    "ba3c_linear": ba3c_linear,
    "nips": nips,
    "nature": nature,
}


def build(torso: str, hidden: int, observation_shape: tuple[int, int, int], n_actions: int, seed: int) -> Network:
    """A network for channel-first uint8 observations; the same seed gives the same weights on every rank."""
    channels, height, width = observation_shape
    parts = TORSOS[torso](hidden, seed)
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
        pixels = tf.cast(tf.transpose(observations, [0, 2, 3, 1]), tf.float32) / 255.0  # [B, H, W, C]
        (logits, values), _ = model.stateless_call(layout.unpack(vector), [], pixels)
        return logits, tf.squeeze(values, 1)

    return Network(layout, pack([w.numpy() for w in weights]), forward)
