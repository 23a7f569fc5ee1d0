"""One copy of the weights and the compiled functions that use it: act, greedy, gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from dba3c.learning.clipping import Clip
from dba3c.learning.shards import Figures, Shards, flat
from dba3c.networks import MEMORY, Network
from dba3c.networks.compiled import compiled
from dba3c.types import BY_TIME, Algorithm, Array, Batch, Clock, Columns, Gradient, Outputs, Prediction, Update

Part = Array | slice  # indices of one axis
Index = Part | tuple[slice, Part]  # of [T, B, …]
MeanGradient = Callable[..., tuple[tf.Tensor, Figures]]  # arrays [T, B, …], and what memory needs → mean over T, B


class Agent:
    """A network, an algorithm and a flat weight vector.

    The vector is read once per call, so a call sees the weights of one update even while another thread assigns new.
    """

    def __init__(
        self,
        network: Network,
        algorithm: Algorithm,
        clip: Clip,
        loss_scale: float,
        seed: int,
        total_steps: int,
        shards: Shards,
    ) -> None:
        self.algorithm = algorithm
        self.clock = Clock(0, 0, total_steps)
        self.layout = network.layout
        self.multiply_adds = network.multiply_adds
        self.memory_size = network.memory_size
        self.noise_size = algorithm.noise_size
        self.normaliser = network.normaliser
        self.weights = tf.Variable(network.initial, name="weights")
        algorithm.begin(self.weights)
        self._features = network.features
        self._prepare = network.prepare
        self._forward = network.forward
        self._clip = clip
        self._loss_scale = loss_scale
        self._seed = seed
        self._shards = shards
        numbers, vector = tf.TensorSpec((None, None), tf.float32), tf.TensorSpec(self.weights.shape, tf.float32)
        # Nothing is passed for a memory of no columns: each argument of a call costs 10 µs.
        self._memory = [tf.TensorSpec((None, self.memory_size), tf.float32)] if self.memory_size else []
        self._act = self._compiled(self._act_graph, numbers, *self._memory)
        self._greedy = self._compiled(self._greedy_graph, *self._memory)
        self._outputs = self._compiled(lambda seen, weights: self._forward(weights, seen), vector)
        self._gradient: MeanGradient | None = None
        self._figures: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """The number of the update that made the weights."""
        return self.clock.updates

    @property
    def reward_scale(self) -> float:
        return self.normaliser.reward_scale

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        exploration = self.algorithm.exploration(simulators, self.clock)
        numbers = np.concatenate([noise, exploration], axis=1) if exploration.shape[1] else noise
        if not self.memory_size:
            actions, log_probabilities, values = self._act(observations, numbers)
            return Prediction(actions.numpy(), log_probabilities.numpy(), values.numpy(), memory)
        return Prediction(*(tensor.numpy() for tensor in self._act(observations, numbers, memory)))

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        if not self.memory_size:
            return self._greedy(observations).numpy(), memory
        actions, after = self._greedy(observations, memory)
        return actions.numpy(), after.numpy()

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        """Compute the gradients that the algorithm takes from a batch, each with the weights of its moment."""
        if not batch.samples:
            yield self._nothing(batch)
            return
        columns = self.algorithm.columns(batch, self.clock, self._evaluate)
        observations = batch.observations[:-1]
        gradient = self._gradient = self._gradient or self._compile_gradient(columns)
        new_steps = batch.steps
        parts, moments = list(self._parts(batch)), self.normaliser.increments(batch)
        for number, part in enumerate(parts, 1):
            version = self.version
            arrays = [array[part] for array in (observations, *columns.values())]
            mean, figures = gradient(arrays, *self._before(batch, part))
            lag = version - batch.versions[part]
            sums = {name: float(value) * lag.size for name, value in figures.items()}
            steps = min(lag.size * batch.steps // batch.samples, new_steps)
            new_steps -= steps
            sums["lag"] = float(lag.sum())
            # With the last one, so that the same statistics hold for all that is learned from a batch.
            seen = moments if number == len(parts) else np.zeros_like(moments)
            yield Gradient(mean.numpy(), lag.size, steps, version, sums, {"max_lag": float(lag.max())}, seen)

    def _nothing(self, batch: Batch) -> Gradient:
        """Count what was played while there is nothing to learn from; figures have the names that they will have."""
        if not self._figures:
            (made_up,) = self.gradients(one_sample_like(batch))
            self._figures = tuple(made_up.sums)
        sums = dict.fromkeys(self._figures, 0.0)
        return Gradient(np.zeros(self.layout.total, np.float32), 0, batch.steps, self.version, sums, {"max_lag": 0.0})

    def _parts(self, batch: Batch) -> Iterator[Index]:
        """Cut a batch into minibatches of time steps or, if steps depend on what came before them, of simulators."""
        steps, simulators = batch.rewards.shape
        if not self.memory_size:
            yield from self.algorithm.minibatches(steps, self._seed, self.version)
            return
        for some in self.algorithm.minibatches(simulators, self._seed, self.version, True):
            yield slice(None), some

    def _before(self, batch: Batch, part: Index) -> tuple[Array, ...]:
        """What the memory of a part depends on: its state at the start, and the steps with which episodes begin."""
        if not self.memory_size:
            return ()
        begins = np.concatenate([np.zeros_like(batch.ended[:1]), batch.ended[:-1]])  # [T, B]
        return batch.memory[np.newaxis][part][0], begins[part]

    def _evaluate(self, weights: tf.Variable, observations: Array) -> dict[str, Array]:
        """What the network says with other weights, such as those of a target network."""
        return {name: tensor.numpy() for name, tensor in self._outputs(observations, weights.read_value()).items()}

    def _compiled(self, graph: Callable[..., Any], *signature: tf.TensorSpec) -> Callable[..., Any]:
        """Compile a function whose first argument are observations, which are prepared for the network first."""
        call = compiled(graph, self._features, *signature)
        return lambda observations, *arguments: call(self._prepare(observations), *arguments)

    def _act_graph(self, observations: tf.Tensor, numbers: tf.Tensor, *memory: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Act with one array of noise and exploration; also return the new memory, if there is one."""
        noise, exploration = numbers[:, : self.noise_size], numbers[:, self.noise_size :]
        outputs = self._one_step(observations, *memory)
        return *self.algorithm.act(outputs, noise, exploration), *(outputs[MEMORY] for _ in memory)

    def _greedy_graph(self, observations: tf.Tensor, *memory: tf.Tensor) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        outputs = self._one_step(observations, *memory)
        actions = self.algorithm.greedy(outputs)
        return (actions, outputs[MEMORY]) if memory else actions

    def _one_step(self, observations: tf.Tensor, *memory: tf.Tensor) -> Outputs:
        """The outputs for one step of some simulators; actors have emptied the memory where an episode begins."""
        begins = [tf.zeros((1, tf.shape(rows)[0]), tf.bool) for rows in memory]
        return self._forward(self.weights.read_value(), observations, *memory, *begins)

    def _compile_gradient(self, columns: Columns) -> MeanGradient:
        """Compile the gradient of the whole batch; with shards, that of one and what is done with their mean."""
        specs = [tf.TensorSpec((None, *column.shape[2:]), column.dtype) for column in columns.values()]
        before = [*self._memory, tf.TensorSpec((None, None), tf.bool)] if self.memory_size else []
        signature = (*specs, *before)
        of_shard = functools.partial(self._gradient_graph, tuple(columns))
        if self._shards.count == 1:
            whole = self._compiled(lambda *arrays: self._clipped_graph(*of_shard(*arrays)), *signature)
            return lambda arrays, *before: whole(*map(flat, arrays), *before)
        shard = self._compiled(of_shard, *signature)
        clipped = compiled(lambda gradient: self._clipped_graph(gradient, {}), tf.TensorSpec(self.weights.shape))

        def mean(arrays: list[Array], *before: Array) -> tuple[tf.Tensor, Figures]:
            gradient, figures = self._shards.mean(shard, arrays, before)
            result, norm = clipped(gradient)
            return result, figures | norm

        return mean

    def _gradient_graph(
        self, names: tuple[str, ...], observations: tf.Tensor, *arrays: tf.Tensor
    ) -> tuple[tf.Tensor, Figures]:
        columns, before = arrays[: len(names)], arrays[len(names) :]
        weights = self.weights.read_value()
        with tf.GradientTape() as tape:
            tape.watch(weights)
            outputs = self._forward(weights, observations, *before)
            loss, figures = self.algorithm.loss(outputs, **dict(zip(names, columns, strict=True)))
            loss *= self._loss_scale
        return tape.gradient(loss, weights), figures

    def _clipped_graph(self, gradient: tf.Tensor, figures: Figures) -> tuple[tf.Tensor, Figures]:
        figures["gradient_norm"] = norm = tf.norm(gradient)
        # NaN if the norm overflowed, which clipping would have turned into zeros
        return self._clip(gradient) + 0.0 * norm, figures

    def follow(self, update: Update, clock: Clock) -> None:
        """Take note of an update that was just applied to the weights."""
        self.clock = clock
        self.algorithm.follow(update, clock, self.weights)
        self.normaliser.follow(update.moments)

    def load(self, weights: Array, clock: Clock) -> None:
        """Take over another copy's weights."""
        self.weights.assign(np.asarray(weights, np.float32))
        self.algorithm.begin(self.weights)
        self.clock = clock


def one_sample_like(batch: Batch) -> Batch:
    """Make a batch with a single sample, of zeros, from one that has none."""

    def one(array: Array) -> Array:
        return np.zeros((len(array), 1, *array.shape[2:]), array.dtype)  # [T or T + 1, 1, …]

    timed = {name: one(getattr(batch, name)) for name in BY_TIME}
    return Batch(**timed, memory=np.zeros((1, batch.memory.shape[1]), np.float32), steps=0, episodes=[])
