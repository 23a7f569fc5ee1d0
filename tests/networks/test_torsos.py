"""Networks: the paper's Table 2 to the last weight, forward passes against naive layers, how the weights start."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Model
from dba3c.networks import Network, build
from dba3c.types import Array, Head
from tests.fakes.batches import spaces

N_ACTIONS = 6
HEADS = {"policy": Head(N_ACTIONS, gain=0.01), "value": Head(1)}
RGB, GRAY = (12, 84, 84), (4, 84, 84)  # four frames: the paper's colours, or gray
SHAPES = {"ba3c": RGB, "ba3c_linear": RGB, "nips": GRAY, "nature": GRAY, "ga3c": GRAY}
STRIDES = {"ba3c": (1, 1, 1, 1), "ba3c_linear": (1, 1, 1, 1), "nips": (4, 2), "nature": (4, 2, 1), "ga3c": (4, 2)}
POOLED = {"ba3c": 3, "ba3c_linear": 3}  # the first so many convolutions
PADDED = {"ga3c": ((2, 2), (1, 2))}  # zeros before and after rows and columns: 84 → 21 → 11


def model(torso: str = "nips", hidden: int = 16, **more: Any) -> Model:
    plain = {"memory": 0, "init": "torso", "standardise": False, "separate": False}
    return Model(**{"torso": torso, "hidden": hidden} | plain | more)


@cache
def network(torso: str, hidden: int = 128, seed: int = 0) -> Network:
    return build(model(torso, hidden), spaces(N_ACTIONS, SHAPES[torso]), HEADS, seed)


def forward(net: Network, vector: tf.Tensor, seen: Array) -> tuple[tf.Tensor, tf.Tensor]:
    """Logits [B, A] and values [B]."""
    outputs = net.forward(vector, net.prepare(seen))
    assert list(outputs) == list(HEADS)
    return outputs["policy"], tf.squeeze(outputs["value"], 1)


def by_name(net: Network, vector: Array) -> dict[str, Array]:
    parts = net.layout.unpack(tf.constant(vector))
    return {name: part.numpy() for name, part in zip(net.layout.names, parts, strict=True)}


def observations(shape: tuple[int, int, int], count: int = 2) -> Array:
    return np.random.default_rng(0).integers(256, size=(count, *shape)).astype(np.uint8)


def unsettled(net: Network) -> Array:
    """The first weights, moved a little: biases that start at zero would not show whether they are used."""
    return net.initial + np.random.default_rng(1).normal(size=net.layout.total, scale=0.02).astype(np.float32)


TABLE_2 = {256: 538119, 128: 332295, 64: 229383, 32: 177927, 16: 152199}
AS_RELEASED = {256: 537863, 128: 332167, 64: 229319, 32: 177895, 16: 152183}


@pytest.mark.parametrize(
    ("torso", "hidden", "count"),
    [
        *(("ba3c", hidden, count) for hidden, count in TABLE_2.items()),
        *(("ba3c_linear", hidden, count) for hidden, count in AS_RELEASED.items()),
        ("nips", 256, 677943),
        ("nature", 512, 1687719),
        ("ga3c", 256, 1005623),
    ],
)
def test_number_of_parameters(torso: str, hidden: int, count: int) -> None:
    net = network(torso, hidden)
    assert net.layout.total == count
    assert net.initial.shape == (count,)
    assert net.initial.dtype == np.float32


def naive_convolution(x: Array, kernel: Array, stride: int) -> Array:
    """Each output pixel is the sum of its patch times the kernel.  [B, H, W, C], [k, k, C, F] → [B, H', W', F]"""
    size = kernel.shape[0]
    height, width = ((n - size) // stride + 1 for n in x.shape[1:3])
    out = np.zeros((len(x), height, width, kernel.shape[3]))
    for i in range(height):
        for j in range(width):
            patch = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
            out[:, i, j] = np.tensordot(patch, kernel, axes=3)
    return out


def naive_pooling(x: Array) -> Array:
    """The largest of every 2 × 2 pixels; an odd last row or column is dropped."""
    x = x[:, : x.shape[1] // 2 * 2, : x.shape[2] // 2 * 2]
    return np.asarray(np.stack([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]).max(axis=0))


def naive_forward(torso: str, weights: dict[str, Array], pixels: Array) -> tuple[Array, Array]:
    """Logits and values in float64.  pixels: [B, H, W, C], from 0 to 1"""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}
    x = pixels
    if torso.startswith("ba3c"):
        x = np.concatenate([x, np.zeros((*x.shape[:3], 4))], axis=3)
    if torso == "ga3c":
        x = 255 * x / 128 - 1
    for index, stride in enumerate(STRIDES[torso]):
        if torso in PADDED:
            x = np.pad(x, [(0, 0), PADDED[torso][index], PADDED[torso][index], (0, 0)])
        x = np.maximum(naive_convolution(x, w[f"conv{index}/kernel"], stride) + w.get(f"conv{index}/bias", 0.0), 0.0)
        x = naive_pooling(x) if index < POOLED.get(torso, 0) else x
    hidden = x.reshape(len(x), -1) @ w["hidden/kernel"] + w.get("hidden/bias", 0.0)
    features = hidden if torso == "ba3c_linear" else np.maximum(hidden, 0.0)
    logits = features @ w["policy/kernel"] + w["policy/bias"]
    return logits, (features @ w["value/kernel"] + w["value/bias"])[:, 0]


@pytest.mark.parametrize("torso", sorted(SHAPES))
def test_forward_is_that_of_naive_layers(torso: str) -> None:
    """Observations are channel-first uint8; the layers see them transposed and divided by 255."""
    net, seen = network(torso, 16), observations(SHAPES[torso])
    vector = unsettled(net)
    logits, values = forward(net, tf.constant(vector), seen)
    expected_logits, expected_values = naive_forward(torso, by_name(net, vector), seen.transpose(0, 2, 3, 1) / 255.0)
    assert logits.shape == (2, N_ACTIONS)
    assert values.shape == (2,)
    assert np.ptp(expected_logits) > 0.05  # not all units are dead
    np.testing.assert_allclose(logits, expected_logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(values, expected_values, rtol=1e-3, atol=1e-4)


def test_standardised_observations() -> None:
    """Less the mean of all pixels of all frames, over their standard deviation; one colour alone gives zeros."""
    seen = np.concatenate([observations(GRAY), np.full((1, *GRAY), 87, np.uint8)])
    seen[1] //= 4
    net = build(model(standardise=True), spaces(N_ACTIONS, GRAY), HEADS, 0)
    vector = unsettled(net)
    logits, values = forward(net, tf.constant(vector), seen)
    shades = seen / 255.0
    spread = np.sqrt(shades.var(axis=(1, 2, 3), keepdims=True) + 1e-4)
    pixels = (shades - shades.mean(axis=(1, 2, 3), keepdims=True)) / spread
    expected_logits, expected_values = naive_forward("nips", by_name(net, vector), pixels.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(logits, expected_logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(values, expected_values, rtol=1e-3, atol=1e-4)


def test_channels_rows_and_columns_are_kept_apart() -> None:
    """One bright pixel moved along any axis gives another answer; none would if axes were mixed up or averaged."""
    net = network("nips", 16)
    seen = np.zeros((4, *GRAY), np.uint8)
    for row, (channel, y, x) in enumerate([(0, 10, 20), (1, 10, 20), (0, 20, 10), (0, 10, 21)]):
        seen[row, channel, y, x] = 255
    _, values = forward(net, tf.constant(unsettled(net)), seen)
    assert len(set(values.numpy().tolist())) == 4


def test_observations_do_not_mix() -> None:
    net, seen = network("ba3c", 16), observations(RGB, 3)
    together, _ = forward(net, tf.constant(net.initial), seen)
    for row in range(3):
        alone, _ = forward(net, tf.constant(net.initial), seen[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-4, atol=1e-5)


def test_forward_uses_the_weights_it_is_given() -> None:
    net, seen = network("nips", 16), observations(GRAY)
    logits, values = forward(net, tf.zeros(net.layout.total), seen)
    np.testing.assert_array_equal(logits, np.zeros((2, N_ACTIONS)))
    np.testing.assert_array_equal(values, np.zeros(2))


def test_padding_channels_get_no_gradient() -> None:
    """The paper's program appends four zero channels: 5·5·4·32 = 3200 weights of conv0 never learn."""
    net, seen = network("ba3c", 16), observations(RGB)
    vector = tf.constant(net.initial)
    with tf.GradientTape() as tape:
        tape.watch(vector)
        logits, values = forward(net, vector, seen)
        total = tf.reduce_sum(logits**2) + tf.reduce_sum(values**2)
    kernel = by_name(net, tape.gradient(total, vector).numpy())["conv0/kernel"]
    padding = kernel[:, :, 12:]
    assert padding.size == 3200
    np.testing.assert_array_equal(padding, np.zeros_like(padding))
    assert np.count_nonzero(kernel[:, :, :12]) > 0.9 * kernel[:, :, :12].size


@pytest.mark.parametrize("torso", ["ba3c", "ba3c_linear"])
def test_convolutions_start_truncated_normal(torso: str) -> None:
    net = network(torso)
    for index in range(4):
        kernel = by_name(net, net.initial)[f"conv{index}/kernel"]
        assert np.abs(kernel).max() <= 0.06  # cut at two standard deviations
        assert np.abs(kernel).max() > 0.0595  # and not before
        assert kernel.std() == pytest.approx(0.03 * 0.8796, rel=0.03)  # a normal cut at ±2 has 0.8796 of its spread
        assert kernel.mean() == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("torso", ["ba3c", "ba3c_linear"])
@pytest.mark.parametrize(("layer", "fan_in"), [("hidden", 1600), ("policy", 128), ("value", 128)])
def test_dense_layers_start_uniform(torso: str, layer: str, fan_in: int) -> None:
    net = network(torso)
    kernel = by_name(net, net.initial)[f"{layer}/kernel"]
    limit = 1.43 * math.sqrt(3 / fan_in)
    assert kernel.shape[0] == fan_in
    assert np.abs(kernel).max() <= limit * (1 + 1e-6)
    assert np.abs(kernel).max() > limit * 0.97
    assert kernel.std() == pytest.approx(limit / math.sqrt(3), rel=0.1)


@pytest.mark.parametrize("torso", ["nips", "nature", "ga3c"])
@pytest.mark.parametrize(
    ("layer", "gain"), [("conv0", math.sqrt(2)), ("hidden", math.sqrt(2)), ("policy", 0.01), ("value", 1.0)]
)
def test_other_torsos_start_orthogonal(torso: str, layer: str, gain: float) -> None:
    net = network(torso, 64)
    kernel = by_name(net, net.initial)[f"{layer}/kernel"]
    matrix = kernel.reshape(-1, kernel.shape[-1])
    np.testing.assert_allclose(matrix.T @ matrix, gain**2 * np.eye(matrix.shape[1]), atol=1e-5 * gain**2 + 1e-9)


@pytest.mark.parametrize("torso", sorted(SHAPES))
def test_biases_start_at_zero(torso: str) -> None:
    net = network(torso, 16)
    biases = {name: tensor for name, tensor in by_name(net, net.initial).items() if name.endswith("bias")}
    assert {"policy/bias", "value/bias"} <= set(biases)
    assert ("hidden/bias" in biases) == (torso != "ba3c_linear")
    assert all(not bias.any() for bias in biases.values())


@pytest.mark.parametrize("torso", sorted(SHAPES))
def test_seed_decides_the_weights(torso: str) -> None:
    """The same seed gives the same bits, whatever was built before; another one gives other kernels throughout."""
    first = network(torso, 16, seed=7)
    again = build(model(torso), spaces(N_ACTIONS, SHAPES[torso]), HEADS, 7)
    other = network(torso, 16, seed=8)
    assert first.initial.tobytes() == again.initial.tobytes()
    assert first.layout == again.layout == other.layout
    ours, theirs = by_name(first, first.initial), by_name(other, other.initial)
    for name in ours:
        assert name.endswith("bias") or np.mean(ours[name] == theirs[name]) < 0.01


def test_largest_seed_builds() -> None:
    assert network("ba3c", 16, seed=2**32 - 1).layout.total == TABLE_2[16]


def test_neighbouring_seeds_share_no_numbers() -> None:
    """Runs with seeds 0, 1, 2 are meant to be independent repetitions."""
    ours, theirs = (by_name(net, net.initial) for net in (network("ba3c", 16, seed=0), network("ba3c", 16, seed=1)))
    size = theirs["conv0/kernel"].size
    assert np.mean(ours["conv1/kernel"].ravel()[:size] == theirs["conv0/kernel"].ravel()) < 0.01


@pytest.mark.parametrize("memory", [0, 32])
def test_torch_start_is_uniform_within_the_root_of_the_inputs(memory: int) -> None:
    net = build(model(hidden=64, memory=memory, init="torch"), spaces(N_ACTIONS, GRAY), HEADS, 3)
    weights = by_name(net, net.initial)
    inputs = {"conv0": 4 * 8 * 8, "conv1": 16 * 4 * 4, "hidden": 9 * 9 * 32, "policy": memory or 64}
    for layer, count in inputs.items():
        limit = count**-0.5
        kernel, both = weights[f"{layer}/kernel"], [*weights[f"{layer}/kernel"].ravel(), *weights[f"{layer}/bias"]]
        assert limit * 0.9 < np.abs(both).max() <= limit
        assert weights[f"{layer}/bias"].all()
        assert kernel.std() == pytest.approx(limit / math.sqrt(3), rel=0.1)
    if memory:
        assert np.abs(weights["memory/kernel"]).max() == pytest.approx(64**-0.5, rel=0.01)
        assert np.abs(weights["memory/recurrent"]).max() == pytest.approx(32**-0.5, rel=0.01)


def test_a_single_head_is_enough() -> None:
    net = build(model(), spaces(shape=GRAY), {"value": Head(1)}, 0)
    assert net.forward(tf.constant(net.initial), net.prepare(np.zeros((5, *GRAY), np.uint8)))["value"].shape == (5, 1)


def test_an_algorithm_may_ask_for_other_heads() -> None:
    net = build(model(), spaces(shape=GRAY), {"mean": Head(3), "spread": Head(2), "value": Head(1)}, 0)
    outputs = net.forward(tf.constant(net.initial), net.prepare(np.zeros((5, *GRAY), np.uint8)))
    assert {name: tuple(tensor.shape) for name, tensor in outputs.items()} == {
        "mean": (5, 3),
        "spread": (5, 2),
        "value": (5, 1),
    }


@pytest.mark.parametrize("torso", ["ba3c", "nature"])
def test_pictures_that_are_too_small_are_refused(torso: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^model.torso={torso}: .* too large for observations of 20×20 pixels; choose"
    ):
        build(model(torso, 8), spaces(), HEADS, seed=0)
