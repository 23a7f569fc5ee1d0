"""A trained network as a Keras model of Keras's own layers alone, which programs without dba3c can load."""

from __future__ import annotations

import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
from keras import layers, ops

from dba3c.config import names
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Model
from dba3c.networks import MEMORY, parts
from dba3c.networks.flat import TensorLayout
from dba3c.networks.normalisation import MOST, Normaliser
from dba3c.networks.pictures import LEAST_VARIANCE
from dba3c.networks.torsos import PadChannels, Torso
from dba3c.seeds import weight_seeds
from dba3c.types import Array, Head, Spaces

NEXT_MEMORY = "next_memory"  # not as the input is called: names of an ONNX graph are unique


def portable(
    config: Model, spaces: Spaces, heads: dict[str, Head], layout: TensorLayout, weights: Array, normaliser: Normaliser
) -> keras.Model:
    """Build the model: observations as the environment has them, and memory → outputs by head, and the next memory."""
    shape = spaces.observation.shape
    observation = keras.Input(shape, dtype=spaces.observation.dtype.name, name="observation")
    features = pictures(observation, config.standardise) if len(shape) > 1 else vectors(observation, normaliser)
    groups, seeds = parts(heads, config.separate), weight_seeds(0)  # first weights, which are replaced
    towers = []
    for number, some in enumerate(groups):
        torso: Torso = names.find("model.torso", config.torso)(config, seeds)
        towers.append(tower((*shape[1:], shape[0]), torso, config.memory, some, f"tower{number}"))
    fill(towers, layout, weights)
    if not config.memory:
        return keras.Model(observation, {name: out for one in towers for name, out in one(features).items()})
    memory = keras.Input((2 * config.memory * len(towers),), name=MEMORY)
    states = ops.split(memory, 2 * len(towers), axis=1)  # h and c of each tower
    found = [one([features, *states[2 * n : 2 * n + 2]]) for n, one in enumerate(towers)]
    outputs = {name: out for one in found for name, out in one.items()}
    outputs[NEXT_MEMORY] = ops.concatenate([one[NEXT_MEMORY] for one in found], 1)
    return keras.Model([observation, memory], outputs)


def pictures(observation: keras.KerasTensor, standardise: bool) -> keras.KerasTensor:
    """Scale channel-first pictures: [B, C, H, W] → [B, H, W, C]."""
    scaled = ops.cast(observation, "float32") / 255.0
    if standardise:
        mean, variance = ops.moments(scaled, [1, 2, 3], keepdims=True)
        scaled = (scaled - mean) * ops.rsqrt(variance + LEAST_VARIANCE)
    return ops.transpose(scaled, [0, 2, 3, 1])


def vectors(observation: keras.KerasTensor, normaliser: Normaliser) -> keras.KerasTensor:
    """Normalise vectors, if that was asked for in training."""
    mean, scale = normaliser.mean_and_scale()
    return ops.clip((observation - mean) * scale, -MOST, MOST) if mean.size else observation


def tower(shape: tuple[int, ...], torso: Torso, cells: int, heads: dict[str, Head], name: str) -> keras.Model:
    """Connect the layers of a torso, cells that remember and heads, with weights in the order of our own networks."""
    inputs = [keras.Input(shape)]
    features = inputs[0]
    for layer in torso.layers:
        features = padded(features, layer.channels) if isinstance(layer, PadChannels) else layer(features)
    after = {}
    if cells:
        inputs += [keras.Input((cells,)), keras.Input((cells,))]
        one_step = ops.expand_dims(features, 1)
        features, h, c = layers.LSTM(cells, return_state=True, unroll=True, name="lstm")(
            one_step, initial_state=inputs[1:]
        )
        after = {NEXT_MEMORY: ops.concatenate([h, c], 1)}
    return keras.Model(
        inputs, {head: layers.Dense(heads[head].size, name=head)(features) for head in heads} | after, name=name
    )


def padded(features: keras.KerasTensor, channels: int) -> keras.KerasTensor:
    """Add channels of zeros, as PadChannels does."""
    missing = channels - features.shape[-1]
    return ops.concatenate([features, ops.zeros_like(features[..., :missing])], axis=-1)


def fill(towers: list[keras.Model], layout: TensorLayout, weights: Array) -> None:
    """Assign the parts of the flat vector."""
    variables = [variable for one in towers for variable in one.trainable_variables]
    for variable, tensor in zip(variables, layout.unpack(weights), strict=True):
        variable.assign(tensor)


def encode(model: keras.Model, suffix: str) -> bytes:
    """Return the content of a .keras or .onnx file, by Keras's own exporters; ConfigError if they lack a package."""
    if suffix == ".onnx" and find_spec("tf2onnx") is None:
        raise ConfigError("--out: an .onnx file needs the package tf2onnx; install it with pip install 'dba3c[onnx]'")
    with tempfile.TemporaryDirectory(prefix="dba3c-") as folder:
        file = Path(folder) / f"agent{suffix}"
        if suffix == ".onnx":
            zeros = [np.zeros((1, *tensor.shape[1:]), tensor.dtype) for tensor in model.inputs]
            model(zeros if zeros[1:] else zeros[0])  # a model that was never called is not exported
            with warnings.catch_warnings(action="ignore"):  # Keras and NumPy, about each other
                model.export(file, format="onnx", verbose=False)
        else:
            model.save(file)
        return file.read_bytes()
