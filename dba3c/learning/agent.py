"""One copy of the weights and the compiled functions that use it: act, greedy, gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from dba3c.learning.clipping import Clip
from dba3c.networks import Network
from dba3c.networks.compiled import compiled
from dba3c.types import Acted, Algorithm, Array, Batch, Clock, Columns, Gradient, Prediction, Spaces, Update


class Agent:
    """A network, an algorithm and a flat weight vector.

    The vector is read once per call, so a call sees the weights of one update even while another thread assigns new.
    """

    memory_size = 0  # the networks so far remember nothing

    def __init__(
        self, network: Network, algorithm: Algorithm, spaces: Spaces, clip: Clip, seed: int, total_steps: int
    ) -> None:
        self.algorithm = algorithm
        self.clock = Clock(0, 0, total_steps)
        self.layout = network.layout
        self.multiply_adds = network.multiply_adds
        self.noise_size = algorithm.noise_size
        self.weights = tf.Variable(network.initial, name="weights")
        self._forward = network.forward
        self._clip = clip
        self._seed = seed
        self._observation = tf.TensorSpec((None, *spaces.observation.shape), spaces.observation.dtype)
        numbers = tf.TensorSpec((None, None), tf.float32)
        self._act = compiled(self._act_graph, self._observation, numbers)
        self._greedy = compiled(self._greedy_graph, self._observation)
        self._outputs = compiled(self._forward, tf.TensorSpec(self.weights.shape, tf.float32), self._observation)
        self._gradient: Callable[..., tuple[tf.Tensor, dict[str, tf.Tensor]]] | None = None

    @property
    def version(self) -> int:
        """The number of the update that made the weights."""
        return self.clock.updates

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        exploration = self.algorithm.exploration(simulators, self.clock)
        numbers = np.concatenate([noise, exploration], axis=1) if exploration.shape[1] else noise
        actions, log_probabilities, values = self._act(observations, numbers)
        return Prediction(actions.numpy(), log_probabilities.numpy(), values.numpy(), memory)

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        return self._greedy(observations).numpy(), memory

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        """Compute the gradients that the algorithm takes from a batch, each with the weights of its moment."""
        columns = self.algorithm.columns(batch, self.clock, self._evaluate)
        observations = batch.observations[:-1]
        gradient = self._gradient = self._gradient or self._compile_gradient(columns)
        new_steps = batch.steps
        for part in self.algorithm.minibatches(len(batch.rewards), self._seed, self.version):
            version = self.version
            mean, figures = gradient(*(flat(array[part]) for array in (observations, *columns.values())))
            lag = version - batch.versions[part]
            sums = {name: float(value) * lag.size for name, value in figures.items()}
            steps = min(lag.size, new_steps)
            new_steps -= steps
            sums["lag"] = float(lag.sum())
            yield Gradient(mean.numpy(), lag.size, steps, version, sums, {"max_lag": float(lag.max())})

    def _evaluate(self, weights: tf.Variable, observations: Array) -> dict[str, Array]:
        """What the network says with other weights, such as those of a target network."""
        return {name: tensor.numpy() for name, tensor in self._outputs(weights.read_value(), observations).items()}

    def _act_graph(self, observations: tf.Tensor, numbers: tf.Tensor) -> Acted:
        """Act with one array of noise and exploration: each argument of a call costs 10 µs."""
        noise, exploration = numbers[:, : self.noise_size], numbers[:, self.noise_size :]
        return self.algorithm.act(self._forward(self.weights.read_value(), observations), noise, exploration)

    def _greedy_graph(self, observations: tf.Tensor) -> tf.Tensor:
        return self.algorithm.greedy(self._forward(self.weights.read_value(), observations))

    def _compile_gradient(self, columns: Columns) -> Callable[..., tuple[tf.Tensor, dict[str, tf.Tensor]]]:
        specs = [tf.TensorSpec((None, *column.shape[2:]), column.dtype) for column in columns.values()]
        return compiled(functools.partial(self._gradient_graph, tuple(columns)), self._observation, *specs)

    def _gradient_graph(
        self, names: tuple[str, ...], observations: tf.Tensor, *columns: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        weights = self.weights.read_value()
        with tf.GradientTape() as tape:
            tape.watch(weights)
            outputs = self._forward(weights, observations)
            loss, figures = self.algorithm.loss(outputs, **dict(zip(names, columns, strict=True)))
        gradient = tape.gradient(loss, weights)
        figures["gradient_norm"] = norm = tf.norm(gradient)
        # NaN if the norm overflowed, which clipping would have turned into zeros
        return self._clip(gradient) + 0.0 * norm, figures

    def follow(self, update: Update, clock: Clock) -> None:
        """Take note of an update that was just applied to the weights."""
        self.clock = clock
        self.algorithm.follow(update, clock, self.weights)

    def load(self, weights: Array, clock: Clock) -> None:
        """Take over another copy's weights."""
        self.weights.assign(np.asarray(weights, np.float32))
        self.clock = clock


def flat(array: Array) -> Array:
    """[T, B, …] → [T·B, …]"""
    return array.reshape(-1, *array.shape[2:])
