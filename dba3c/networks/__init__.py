"""Networks as pure functions of one flat weight vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from dba3c.config import names
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Model
from dba3c.networks.flat import TensorLayout, pack
from dba3c.networks.memory import Lstm
from dba3c.networks.torsos import Torso
from dba3c.seeds import weight_seeds
from dba3c.types import Array, Head, Outputs, Spaces

LEAST_VARIANCE = 1e-4  # is added to an observation's own, so that one of a single colour stays finite

# Weights [P], observations [B, …] → outputs by head, [B, size] each. A network that remembers takes observations of a
# segment, [T·B, …], the memory before it, [B, M], and where episodes begin, [T, B] bool; it puts out MEMORY, too.
Forward = Callable[..., Outputs]
MEMORY = "memory"  # the output that is remembered after each observation, [T·B, M]


class Network(NamedTuple):
    """A network as a pure function of its flat weights."""

    layout: TensorLayout
    initial: Array  # [P]
    multiply_adds: list[int]  # of each layer with weights, for one observation, in the order of the layers
    memory_size: int  # M; 0 where nothing is remembered
    forward: Forward


def build(config: Model, spaces: Spaces, heads: dict[str, Head], seed: int) -> Network:
    """Build a network for channel-first pictures; the same seed gives the same weights on every rank."""
    channels, height, width = spaces.observation.shape
    seeds = weight_seeds(seed)
    torso: Torso = names.find("model.torso", config.torso)(config, seeds)
    try:
        model = connected((height, width, channels), torso, config.memory, heads)
    except ValueError:
        raise ConfigError(
            f"model.torso={config.torso}: its convolutions are too large for observations of {height}×{width} pixels;"
            " choose another, such as nips, or larger observations"
        ) from None
    weights = model.trainable_variables
    layout = TensorLayout(tuple(w.path for w in weights), tuple(tuple(w.shape) for w in weights))
    outputs = [*heads, MEMORY] if config.memory else [*heads]

    def forward(vector: tf.Tensor, observations: tf.Tensor, *before: tf.Tensor) -> Outputs:
        pixels = tf.cast(observations, tf.float32) / 255.0
        if config.standardise:
            pixels = standardised(pixels)
        pixels = tf.transpose(pixels, [0, 2, 3, 1])  # [B, H, W, C]
        tensors, _ = model.stateless_call(layout.unpack(vector), [], [pixels, *before])
        return dict(zip(outputs, tf.nest.flatten(tensors), strict=True))  # Keras makes no list of a single one

    first = torch_start(layout.shapes, seeds) if config.init == "torch" else [w.numpy() for w in weights]
    return Network(layout, pack(first), multiply_adds(model), 2 * config.memory, forward)


def connected(shape: tuple[int, ...], torso: Torso, cells: int, heads: dict[str, Head]) -> keras.Model:
    """Connect the torso, the cells that remember, if there are any, and the heads."""
    inputs = [keras.Input(shape)]
    features = inputs[0]
    for layer in torso.layers:
        features = layer(features)
    remembered = []
    if cells:
        inputs += [keras.Input((2 * cells,)), keras.Input((None,), dtype="bool")]  # memory, and where episodes begin
        remembered = [Lstm(features.shape[-1], cells, torso.head_init)(features, *inputs[1:])]
        features = remembered[0][:, :cells]
    outputs = [
        layers.Dense(head.size, kernel_initializer=torso.head_init(head.gain), name=name)(features)
        for name, head in heads.items()
    ]
    return keras.Model(inputs, outputs + remembered)


def standardised(pixels: tf.Tensor) -> tf.Tensor:
    """Standardise the pixels of each observation: a bright background, as in Pong, hides nothing."""
    mean, variance = tf.nn.moments(pixels, [1, 2, 3], keepdims=True)
    return (pixels - mean) * tf.math.rsqrt(variance + LEAST_VARIANCE)


def torch_start(shapes: Iterable[tuple[int, ...]], seeds: Iterator[int]) -> list[Array]:
    """Draw first weights as Torch does: uniform within ±1/√inputs, where a bias has the inputs of its kernel."""
    drawn, inputs = [], 1
    for shape in shapes:
        inputs = math.prod(shape[:-1]) if len(shape) > 1 else inputs
        random = np.random.default_rng(next(seeds))
        drawn.append(random.uniform(-(inputs**-0.5), inputs**-0.5, shape).astype(np.float32))
    return drawn


def multiply_adds(model: keras.Model) -> list[int]:
    """Count the uses of each layer's kernels: once at each place of its output."""
    layers_with_weights = [layer for layer in model.layers if layer.trainable_variables]
    return [math.prod(layer.output.shape[1:-1]) * kernel_weights(layer) for layer in layers_with_weights]


def kernel_weights(layer: layers.Layer) -> int:
    """Count a layer's weights that are multiplied with what comes in: all but its biases."""
    return sum(math.prod(weight.shape) for weight in layer.trainable_variables if len(weight.shape) > 1)
