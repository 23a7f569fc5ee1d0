"""The LSTM: its loop and its gradient against a slow transcription, with episodes that end within a segment."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from dba3c.config.schema import Model
from dba3c.networks import MEMORY, build
from dba3c.networks.memory import unrolled
from dba3c.types import Array, Head
from tests.fakes.batches import spaces

STEPS, SIMULATORS, CELLS = 5, 3, 4
HEADS = {"policy": Head(3), "value": Head(1)}
# Episodes end at every kind of place: before the first step, after it, before the last, twice in a row, never.
BEGINS = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]], bool)


class Segment:
    """Random inputs of the loop, in double precision."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.inputs = random.normal(size=(STEPS, SIMULATORS, 4 * CELLS))
        self.recurrent = random.normal(size=(CELLS, 4 * CELLS))
        self.memory = random.normal(size=(SIMULATORS, 2 * CELLS))
        self.pull = random.normal(size=(STEPS, SIMULATORS, 2 * CELLS))  # derivative of a loss by what is remembered


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def slowly_unrolled(inputs: Array, recurrent: Array, memory: Array, begins: Array) -> Array:
    """The LSTM's equations, number by number."""
    states = np.zeros((*begins.shape, memory.shape[1]))
    cells = memory.shape[1] // 2
    for simulator in range(begins.shape[1]):
        h, c = memory[simulator, :cells].copy(), memory[simulator, cells:].copy()
        for t in range(len(begins)):
            if begins[t, simulator]:
                h, c = np.zeros(cells), np.zeros(cells)
            before = h.copy()
            for k in range(cells):
                i, f, g, o = (
                    inputs[t, simulator, gate * cells + k]
                    + sum(before[j] * recurrent[j, gate * cells + k] for j in range(cells))
                    for gate in range(4)
                )
                c[k] = sigmoid(f) * c[k] + sigmoid(i) * math.tanh(g)
                h[k] = sigmoid(o) * math.tanh(c[k])
            states[t, simulator] = [*h, *c]
    return states


def by_differences(loss: Callable[[Array], float], at: Array) -> Array:
    """The gradient of a function, by moving one number at a time."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(*at.shape):
        there, here = at.copy(), at.copy()
        there[index] += 1e-6
        here[index] -= 1e-6
        gradient[index] = (loss(there) - loss(here)) / 2e-6
    return gradient


def test_states_are_those_of_the_slow_loop() -> None:
    segment = Segment()
    arguments = (segment.inputs, segment.recurrent, segment.memory, BEGINS)
    np.testing.assert_allclose(unrolled(*map(tf.constant, arguments)), slowly_unrolled(*arguments), rtol=1e-12)


def test_one_step_is_a_segment_of_one_step() -> None:
    segment = Segment()
    one = (segment.inputs[:1], segment.recurrent, segment.memory, BEGINS[:1])
    np.testing.assert_allclose(unrolled(*map(tf.constant, one)), slowly_unrolled(*one), rtol=1e-12)


@pytest.mark.parametrize("name", ["inputs", "recurrent", "memory"])
def test_gradients_are_those_of_the_slow_loop(name: str) -> None:
    segment = Segment()
    arguments = {"inputs": segment.inputs, "recurrent": segment.recurrent, "memory": segment.memory}

    def loss(moved: Array) -> float:
        return float(np.sum(slowly_unrolled(**arguments | {name: moved}, begins=BEGINS) * segment.pull))

    tensors = {key: tf.constant(array) for key, array in arguments.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors[name])
        value = tf.reduce_sum(unrolled(**tensors, begins=tf.constant(BEGINS)) * segment.pull)
    expected = by_differences(loss, arguments[name])
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(tape.gradient(value, tensors[name]), expected, rtol=1e-6, atol=1e-8)


def test_nothing_flows_over_the_end_of_an_episode() -> None:
    """Not even what is infinite."""
    segment = Segment()
    memory = tf.constant(np.where(BEGINS[0][:, np.newaxis], np.inf, segment.memory))
    inputs = tf.constant(segment.inputs)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        states = unrolled(inputs, tf.constant(segment.recurrent), memory, tf.constant(BEGINS))
        last = tf.reduce_sum(states[-1, 1])  # of a simulator whose last episode began with the last step
    gradient = tape.gradient(last, inputs).numpy()
    assert np.isfinite(states).all()
    assert not gradient[:-1].any()
    assert gradient[-1, 1].any()


def test_network_puts_the_cells_between_hidden_layer_and_heads() -> None:
    model = Model(torso="nips", hidden=8, memory=CELLS, init="torso", standardise=False, separate=False)
    net = build(model, spaces(3), HEADS, seed=1)
    assert net.memory_size == 2 * CELLS
    weights = dict(zip(net.layout.names, map(np.array, net.layout.unpack(tf.constant(net.initial))), strict=True))
    assert weights["memory/bias"].tolist() == [0] * CELLS + [1] * CELLS + [0] * 2 * CELLS
    seen = np.random.default_rng(0).integers(256, size=(STEPS * SIMULATORS, 1, 20, 20)).astype(np.uint8)
    memory = Segment().memory.astype(np.float32)
    seen = tf.constant(net.prepare(seen).numpy())
    outputs = net.forward(tf.constant(net.initial), seen, tf.constant(memory), tf.constant(BEGINS))
    plain = build(model.model_copy(update={"memory": 0}), spaces(3), {"policy": Head(8)}, seed=1)
    identity = plain.initial.copy()
    identity[-72:] = np.append(np.eye(8), np.zeros(8))  # the head shows the hidden units
    hidden = plain.forward(tf.constant(identity), seen)["policy"].numpy()
    inputs = (hidden @ weights["memory/kernel"] + weights["memory/bias"]).reshape(STEPS, SIMULATORS, -1)
    states = slowly_unrolled(inputs, weights["memory/recurrent"], memory, BEGINS).reshape(-1, 2 * CELLS)
    np.testing.assert_allclose(outputs[MEMORY], states, atol=1e-5)
    for name in HEADS:
        expected = states[:, :CELLS] @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
        np.testing.assert_allclose(outputs[name], expected, atol=1e-5)
    assert net.multiply_adds[-3:] == [8 * 4 * CELLS + CELLS * 4 * CELLS, 3 * CELLS, CELLS]


def test_published_number_of_parameters() -> None:
    """A3C with 256 cells on the network of 2013, for six actions: worked out from the layers' sizes."""
    model = Model(torso="nips", hidden=256, memory=256, init="torso", standardise=False, separate=False)
    heads = {"policy": Head(6), "value": Head(1)}
    hidden = 16 * (4 * 64 + 1) + 32 * (16 * 16 + 1) + (9 * 9 * 32 + 1) * 256
    total = hidden + (256 + 256 + 1) * 4 * 256 + (256 + 1) * (6 + 1)
    assert build(model, spaces(6, (4, 84, 84)), heads, 0).layout.total == total == 1_203_255
