"""Torsos: the layers up to the hidden units, and how the heads on top of them start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf
from keras import initializers, layers

from dba3c.config.schema import Model


class Torso(NamedTuple):
    """Layers up to the hidden units, and how the heads on top of them start."""

    layers: list[layers.Layer]
    head_init: Callable[[float], initializers.Initializer]  # for a head's gain; called once per head, in their order


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


def ba3c_convolutions(seeds: Iterator[int]) -> list[layers.Layer]:
    """84×84×16 → 1600: four convolutions without bias, truncated normal 0.03, and three poolings."""

    def conv(index: int, filters: int, kernel: int) -> layers.Layer:
        init = initializers.TruncatedNormal(stddev=0.03, seed=next(seeds))
        name = f"conv{index}"
        return layers.Conv2D(filters, kernel, activation="relu", use_bias=False, kernel_initializer=init, name=name)

    convolutions = [conv(0, 32, 5), conv(1, 32, 5), conv(2, 64, 5)]
    pooled = [layer for convolution in convolutions for layer in (convolution, layers.MaxPool2D())]
    return [PadChannels(16), *pooled, conv(3, 64, 3), layers.Flatten()]


def ba3c(config: Model, seeds: Iterator[int]) -> Torso:
    """The network of the paper's Table 2: a hidden layer with bias and ReLU."""
    convolutions = ba3c_convolutions(seeds)
    dense = layers.Dense(config.hidden, activation="relu", kernel_initializer=unit_scaling(next(seeds)), name="hidden")
    return Torso([*convolutions, dense], lambda _gain: unit_scaling(next(seeds)))


def ba3c_linear(config: Model, seeds: Iterator[int]) -> Torso:
    """The network of the paper's program: its hidden layer has neither bias nor activation."""
    convolutions = ba3c_convolutions(seeds)
    dense = layers.Dense(config.hidden, use_bias=False, kernel_initializer=unit_scaling(next(seeds)), name="hidden")
    return Torso([*convolutions, dense], lambda _gain: unit_scaling(next(seeds)))


def orthogonal_torso(
    convolutions: list[tuple[int, int, int]], hidden: int, seeds: Iterator[int], padding: str = "valid"
) -> Torso:
    """(filters, kernel, stride) convolutions and a hidden layer; every layer starts orthogonal."""

    def orthogonal(gain: float) -> initializers.Initializer:
        return initializers.Orthogonal(gain, seed=next(seeds))

    def conv(index: int, filters: int, kernel: int, stride: int) -> layers.Layer:
        init, name = orthogonal(2**0.5), f"conv{index}"
        return layers.Conv2D(filters, kernel, stride, padding, activation="relu", kernel_initializer=init, name=name)

    stack = [conv(index, *sizes) for index, sizes in enumerate(convolutions)]
    dense = layers.Dense(hidden, activation="relu", kernel_initializer=orthogonal(2**0.5), name="hidden")
    return Torso([*stack, layers.Flatten(), dense], orthogonal)


def mlp(config: Model, seeds: Iterator[int]) -> Torso:
    """Two hidden layers with tanh, as PPO's authors have it for control."""
    return dense_torso(config.hidden, 2, "tanh", seeds)


def mlp_relu(config: Model, seeds: Iterator[int]) -> Torso:
    """One hidden layer with ReLU, as A3C has it for control."""
    return dense_torso(config.hidden, 1, "relu", seeds)


def dense_torso(hidden: int, count: int, activation: str, seeds: Iterator[int]) -> Torso:
    """Hidden layers of equal size; every layer starts orthogonal."""

    def orthogonal(gain: float) -> initializers.Initializer:
        return initializers.Orthogonal(gain, seed=next(seeds))

    stack = [
        layers.Dense(hidden, activation=activation, kernel_initializer=orthogonal(2**0.5), name=f"hidden{index}")
        for index in range(count)
    ]
    return Torso([layers.Flatten(), *stack], orthogonal)


def nips(config: Model, seeds: Iterator[int]) -> Torso:
    """The convolutions of Mnih et al. 2013."""
    return orthogonal_torso([(16, 8, 4), (32, 4, 2)], config.hidden, seeds)


def nature(config: Model, seeds: Iterator[int]) -> Torso:
    """The convolutions of Mnih et al. 2015."""
    return orthogonal_torso([(32, 8, 4), (64, 4, 2), (64, 3, 1)], config.hidden, seeds)


def ga3c(config: Model, seeds: Iterator[int]) -> Torso:
    """The convolutions of 2013, padded with zeros, on pixels from -1 to 1, as GA3C's program has them."""
    padded = orthogonal_torso([(16, 8, 4), (32, 4, 2)], config.hidden, seeds, "same")
    centred = layers.Rescaling(255 / 128, offset=-1)  # value / 128 - 1, of pixels that were divided by 255
    return padded._replace(layers=[centred, *padded.layers])
