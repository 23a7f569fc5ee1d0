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
from dba3c.networks.normalisation import Normaliser
from dba3c.networks.pictures import Pictures
from dba3c.networks.torsos import Torso
from dba3c.seeds import weight_seeds
from dba3c.types import Array, Head, Outputs, Spaces

# Weights [P], prepared observations [B, …] → outputs by head, [B, size] each. A network that remembers takes those of a
# segment, [T·B, …], the memory before it, [B, M], and where episodes begin, [T, B] bool; it puts out MEMORY, too.
Forward = Callable[..., Outputs]
MEMORY = "memory"  # the output that is remembered after each observation, [T·B, M]


class Network(NamedTuple):
    """A network as a pure function of its flat weights."""

    layout: TensorLayout
    initial: Array  # [P]
    multiply_adds: list[int]  # of each layer with weights, for one observation, in the order of the layers
    memory_size: int  # M; 0 where nothing is remembered
    features: tf.TensorSpec  # what `forward` takes: prepared observations
    prepare: Callable[[Array], Array | tf.Tensor]  # overwrites what the calling thread has prepared before
    forward: Forward
    normaliser: Normaliser  # of its observations, and of the rewards for its values


def build(
    config: Model, spaces: Spaces, heads: dict[str, Head], seed: int, normaliser: Normaliser | None = None
) -> Network:
    """Build a network for vectors or channel-first pictures; the same seed gives the same weights on every rank."""
    normaliser = normaliser or Normaliser()
    shape = spaces.observation.shape
    seeds = weight_seeds(seed)
    towers = [tower(config, shape, some, seeds) for some in parts(heads, config.separate)]
    weights = [weight for one in towers for weight in one.model.trainable_variables]
    layout = TensorLayout(tuple(w.path for w in weights), tuple(tuple(w.shape) for w in weights))

    def forward(vector: tf.Tensor, observations: tf.Tensor, *before: tf.Tensor) -> Outputs:
        features = observations if len(shape) > 1 else normaliser.normalised(observations)
        tensors = iter(layout.unpack(vector))
        if len(towers) == 1:
            return towers[0].outputs(tensors, features, *before)
        memories = [(memory, before[1]) for memory in tf.split(before[0], len(towers), axis=1)] if before else [(), ()]
        found = [one.outputs(tensors, features, *own) for one, own in zip(towers, memories, strict=True)]
        every = {name: tensor for outputs in found for name, tensor in outputs.items()}
        return every | ({MEMORY: tf.concat([one[MEMORY] for one in found], 1)} if before else {})

    first = torch_start(layout.shapes, seeds) if config.init == "torch" else [w.numpy() for w in weights]
    uses = [count for one in towers for count in multiply_adds(one.model)]
    prepare = Pictures(config.standardise) if len(shape) > 1 else np.asarray
    features = tf.TensorSpec((None, *last(shape)), tf.float32)
    return Network(layout, pack(first), uses, 2 * config.memory * len(towers), features, prepare, forward, normaliser)


def parts(heads: dict[str, Head], separate: bool) -> list[dict[str, Head]]:
    """Divide the heads among towers: the value has its own, if asked for."""
    if not separate:
        return [heads]
    return [{name: head for name, head in heads.items() if (name == "value") == own} for own in (False, True)]


class Tower(NamedTuple):
    """A torso, the cells that remember and some heads."""

    model: keras.Model
    names: list[str]  # of its outputs

    def outputs(self, tensors: Iterator[tf.Tensor], *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Compute the outputs with the next of all weights."""
        own = [next(tensors) for _ in self.model.trainable_variables]
        found, _ = self.model.stateless_call(own, [], list(inputs))
        return dict(zip(self.names, tf.nest.flatten(found), strict=True))  # Keras makes no list of a single one


def tower(config: Model, shape: tuple[int, ...], heads: dict[str, Head], seeds: Iterator[int]) -> Tower:
    """Build a tower; ConfigError if its torso cannot see observations of this shape."""
    torso: Torso = names.find("model.torso", config.torso)(config, seeds)
    try:
        model = connected(last(shape), torso, config.memory, heads)
    except ValueError:
        if len(shape) == 1:
            raise ConfigError(
                f"model.torso={config.torso}: is for pictures, and observations are vectors of {shape[0]} numbers;"
                " use mlp"
            ) from None
        raise ConfigError(
            f"model.torso={config.torso}: its convolutions are too large for observations of {shape[1]}×{shape[2]}"
            " pixels; choose another, such as nips, or larger observations"
        ) from None
    return Tower(model, [*heads, MEMORY] if config.memory else [*heads])


def last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Put the channels of a picture last; a vector stays as it is."""
    return (*shape[1:], shape[0])


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
