"""One copy of the weights and the compiled functions that use it: act, greedy, gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from dba3c.learning.a3c import A3C
from dba3c.networks import Network
from dba3c.networks.compiled import compiled
from dba3c.types import Array, Batch, Episode, Gradient, Prediction


class Agent:
    """A network, an algorithm and a flat weight vector.

    The vector is read once per call, so a call sees the weights of one update even while another thread assigns new.
    """

    def __init__(
        self,
        network: Network,
        algorithm: A3C,
        observation_shape: tuple[int, int, int],
        tensor_clip: float | None,
        seed: int,
    ) -> None:
        self.version, self._seed = 0, seed
        self.layout, self.multiply_adds = network.layout, network.multiply_adds
        self.weights = tf.Variable(network.initial, name="weights")
        self._network, self._algorithm, self._tensor_clip = network, algorithm, tensor_clip
        observations = tf.TensorSpec((None, *observation_shape), tf.uint8)
        vector, indices = tf.TensorSpec((None,), tf.float32), tf.TensorSpec((None,), tf.int32)
        self._act = compiled(self._act_graph, observations, vector)
        self._greedy = compiled(self._greedy_graph, observations)
        self._gradient = compiled(self._gradient_graph, observations, indices, *[vector] * algorithm.vectors)

    def act(self, observations: Array, noise: Array) -> Prediction:
        actions, log_probabilities, values = self._act(observations, noise)
        return Prediction(actions.numpy(), log_probabilities.numpy(), values.numpy())

    def greedy(self, observations: Array) -> Array:
        return self._greedy(observations).numpy()  # type: ignore[no-any-return]

    def gradients(self, batch: Batch, advantage_scale: float = 1.0, progress: float = 0.0) -> Iterator[Gradient]:
        """The gradients that the algorithm takes from a batch, each with the weights of its moment."""
        self._algorithm.anneal(progress)
        targets = self._algorithm.targets(batch, advantage_scale)
        new_steps, episodes = batch.samples, batch.episodes
        for part in self._algorithm.parts(len(batch.actions), self._seed, self.version):
            inputs = (flat(array[part]) for array in (batch.observations, *targets))
            version = self.version
            mean, figures = self._gradient(*inputs)
            lag = version - batch.versions[part]
            sums = {name: float(value) * lag.size for name, value in figures.items()}
            sums |= {"lag": float(lag.sum())} | episode_sums(episodes)
            own = {"max_lag": float(lag.max())}
            yield Gradient(mean.numpy(), lag.size, min(lag.size, new_steps), version, sums, own)
            new_steps, episodes = max(0, new_steps - lag.size), []

    def _act_graph(self, observations: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        logits, values = self._network.forward(self.weights.read_value(), observations)
        return *self._algorithm.act(logits, noise), values

    def _greedy_graph(self, observations: tf.Tensor) -> tf.Tensor:
        logits, _ = self._network.forward(self.weights.read_value(), observations)
        return tf.argmax(logits, axis=1, output_type=tf.int32)

    def _gradient_graph(
        self, observations: tf.Tensor, actions: tf.Tensor, *targets: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        weights = self.weights.read_value()
        with tf.GradientTape() as tape:
            tape.watch(weights)
            logits, values = self._network.forward(weights, observations)
            loss, figures = self._algorithm.loss(logits, values, actions, *targets)
        gradient = tape.gradient(loss, weights)
        figures["gradient_norm"] = norm = tf.norm(gradient)
        if self._tensor_clip is not None:
            gradient = self.layout.clip_tensors(gradient, self._tensor_clip)
        return gradient + 0.0 * norm, figures  # NaN if the norm overflowed, which the clip would have turned into zeros

    def load(self, weights: Array, version: int) -> None:
        """Take over another copy's weights."""
        self.weights.assign(np.asarray(weights, np.float32))
        self.version = version


def flat(array: Array) -> Array:
    """[T, B, …] → [T·B, …]"""
    return array.reshape(-1, *array.shape[2:])


def episode_sums(episodes: list[Episode]) -> dict[str, float]:
    return {
        "episodes": float(len(episodes)),
        "score": sum(episode.score for episode in episodes),
        "episode_steps": float(sum(episode.steps for episode in episodes)),
    }
