"""A Keras model of Keras's own layers computes what the network does, also after a way through a file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from gymnasium.spaces import Box, Discrete

from dba3c import networks
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Model
from dba3c.networks import MEMORY, Network, portable
from dba3c.networks.normalisation import Normaliser
from dba3c.types import Array, Head, Spaces
from tests.fakes.settings import settings

GRAY = Spaces(Box(0, 255, (4, 84, 84), np.uint8), Discrete(6))
COLOURS = Spaces(Box(0, 255, (12, 84, 84), np.uint8), Discrete(6))
VECTORS = Spaces(Box(-np.inf, np.inf, (5,), np.float32), Discrete(3))
HEADS = {"policy": Head(6), "value": Head(1)}
ROWS = 3


def seen(spaces: Spaces) -> Array:
    random = np.random.default_rng(1)
    shape = (ROWS, *spaces.observation.shape)
    if len(shape) > 2:
        return random.integers(0, 256, shape, np.uint8)
    return np.asarray(random.normal(3, 4, shape), np.float32)


def trained(model: Model, spaces: Spaces, normaliser: Normaliser) -> tuple[Network, Array]:
    """A network, and weights other than its first ones."""
    network = networks.build(model, spaces, HEADS, 0, normaliser)
    return network, np.random.default_rng(2).normal(0, 0.05, network.layout.total).astype(np.float32)


def with_statistics() -> Normaliser:
    normaliser = Normaliser(5)
    random = np.random.default_rng(3)
    normaliser.restore(
        {
            "observations_count": np.array(10.0),
            "observations_mean": random.normal(size=5),
            "observations_squares": np.array([0.0, 10.0, 1e4, 1.0, 90.0]),
        }
    )
    return normaliser


def made(
    spaces: Spaces, *options: str, normaliser: Normaliser | None = None
) -> tuple[keras.Model, Any, dict[str, Any]]:
    """The portable model, its input, and what our own network says about that."""
    model = settings(*options).model
    normaliser = normaliser or Normaliser()
    network, weights = trained(model, spaces, normaliser)
    copy = portable.portable(model, spaces, HEADS, network.layout, weights, normaliser)
    observations = seen(spaces)
    if not model.memory:
        return copy, observations, dict(network.forward(tf.constant(weights), network.prepare(observations)))
    memory = np.random.default_rng(4).normal(size=(ROWS, network.memory_size)).astype(np.float32)
    begins = tf.zeros((1, ROWS), tf.bool)
    outputs = dict(network.forward(tf.constant(weights), network.prepare(observations), tf.constant(memory), begins))
    return copy, [observations, memory], outputs | {portable.NEXT_MEMORY: outputs.pop(MEMORY)}


@pytest.mark.parametrize(
    ("spaces", "options"),
    [
        (GRAY, ["model.torso=nips", "model.standardise=true"]),
        (GRAY, ["model.torso=nature", "model.memory=8"]),
        (GRAY, ["model.torso=ga3c"]),
        (COLOURS, ["model.torso=ba3c"]),
        (VECTORS, ["model.torso=mlp", "model.separate=true"]),
        (VECTORS, ["model.torso=mlp_relu", "model.separate=true", "model.memory=4"]),
    ],
)
def test_the_model_says_what_the_network_says(spaces: Spaces, options: list[str]) -> None:
    normaliser = with_statistics() if spaces is VECTORS else None
    model, inputs, expected = made(spaces, "model.hidden=16", *options, normaliser=normaliser)
    found = model(inputs)
    assert set(found) == set(expected) == {*HEADS} | ({portable.NEXT_MEMORY} if model.inputs[1:] else set())
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_keras_file_names_nothing_of_ours(tmp_path: Path) -> None:
    model, inputs, expected = made(COLOURS, "model.torso=ba3c", "model.hidden=16", "model.memory=4")
    (tmp_path / "agent.keras").write_bytes(portable.encode(model, ".keras"))
    assert b"dba3c" not in zipfile.ZipFile(tmp_path / "agent.keras").read("config.json")
    found = keras.saving.load_model(tmp_path / "agent.keras")(inputs)
    np.testing.assert_allclose(found["policy"], expected["policy"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [["model.standardise=true"], ["model.memory=4"]])
def test_onnx_runtime_says_what_the_network_says(options: list[str]) -> None:
    model, inputs, expected = made(GRAY, "model.hidden=16", *options)
    session = onnxruntime.InferenceSession(portable.encode(model, ".onnx"))
    arrays = inputs if isinstance(inputs, list) else [inputs]
    names = [one.name for one in session.get_inputs()]
    assert names == ["observation", MEMORY][: len(arrays)]
    outputs = [one.name for one in session.get_outputs()]
    found = dict(zip(outputs, session.run(None, dict(zip(names, arrays, strict=True))), strict=True))
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=1e-3, atol=1e-4, err_msg=name)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs the package tf2onnx; install it with pip install 'dba3c\[onnx\]'"):
        portable.encode(made(VECTORS, "model.torso=mlp", "model.hidden=4")[0], ".onnx")
