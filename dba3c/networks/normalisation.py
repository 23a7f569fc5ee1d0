"""Observations and rewards in units of their own spread, by statistics that all ranks have in common."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.types import NOTHING, Array, Batch, Spaces

MOST = 10.0  # standard deviations from the mean to which observations are clipped [as OpenAI's baselines do]
LEAST_VARIANCE = 1e-8  # is added, so that a number that never changes stays finite


class RunningMoments:
    """Mean and variance of vectors, number by number; increments travel in 32 bits, totals have 64."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0.0
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)  # summed squares of the distances from the mean

    @property
    def deviation(self) -> Array:
        """The standard deviation; 1 while nothing is known."""
        return np.sqrt(self.squares / self.count + LEAST_VARIANCE) if self.count else np.ones(self.size)

    def increment(self, values: Array) -> Array:
        """Sum up new values, [N, size], by their distances from the mean so far, which stay small: → [1 + 2·size]."""
        distances = values.astype(np.float64) - self.mean
        sums = [[float(len(values))], distances.sum(axis=0), np.square(distances).sum(axis=0)]
        return np.concatenate(sums).astype(np.float32)

    def add(self, increment: Array) -> None:
        """Take over new values, by the sum of increments to the same mean."""
        count, sums, squares = float(increment[0]), *np.split(increment[1:].astype(np.float64), 2)
        if count == 0 or not np.isfinite(increment).all():
            return
        self.count += count
        shift = sums / self.count
        self.squares = np.maximum(self.squares + squares - self.count * np.square(shift), 0.0)
        self.mean = self.mean + shift

    def state(self) -> dict[str, Array]:
        return {"count": np.array(self.count), "mean": self.mean.copy(), "squares": self.squares.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        self.count = float(state["count"])
        self.mean = np.array(state["mean"], np.float64)
        self.squares = np.array(state["squares"], np.float64)


class Normaliser:
    """What env.normalise_observations and env.normalise_rewards ask for; by default nothing."""

    def __init__(self, numbers: int = 0, rewards: bool = False) -> None:
        self._moments = {"observations": RunningMoments(numbers)} if numbers else {}
        self._moments |= {"returns": RunningMoments(1)} if rewards else {}
        self.reward_scale = 1.0  # by which rewards are multiplied for learning
        # Mean and 1/deviation together: a thread that predicts while another one assigns sees both, old or new.
        self._numbers = tf.Variable(np.stack([np.zeros(numbers), np.ones(numbers)]).astype(np.float32), trainable=False)

    def normalised(self, observations: tf.Tensor) -> tf.Tensor:
        """Normalise vectors, [B, numbers]; anything else stays as it is."""
        if "observations" not in self._moments:
            return observations
        mean, scale = tf.unstack(self._numbers.read_value())
        return tf.clip_by_value((observations - mean) * scale, -MOST, MOST)

    def mean_and_scale(self) -> Array:
        """Return what observations are normalised by, [2, numbers]; of no numbers, if they are not."""
        return np.asarray(self._numbers.numpy())

    def increments(self, batch: Batch) -> Array:
        """Sum up what a batch adds to the statistics."""
        values = {
            "observations": batch.observations[:-1].reshape(batch.samples, -1),
            "returns": batch.past_returns.reshape(-1, 1),
        }
        each = [moments.increment(values[name]) for name, moments in self._moments.items()]
        return np.concatenate(each) if each else NOTHING

    def follow(self, increments: Array) -> None:
        """Take over what all ranks' batches have added."""
        ends = np.cumsum([1 + 2 * moments.size for moments in self._moments.values()])
        for moments, part in zip(self._moments.values(), np.split(increments, ends)[:-1], strict=True):
            moments.add(part)
        self._refresh()

    def _refresh(self) -> None:
        if "observations" in self._moments:
            seen = self._moments["observations"]
            self._numbers.assign(np.stack([seen.mean, 1 / seen.deviation]))
        if "returns" in self._moments:
            self.reward_scale = float(1 / self._moments["returns"].deviation[0])

    def state(self) -> dict[str, Array]:
        """Return the statistics, for a checkpoint."""
        each = {name: moments.state() for name, moments in self._moments.items()}
        return {f"{name}_{key}": value for name, state in each.items() for key, value in state.items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Take over saved statistics; ConfigError if they are not of this agent."""
        shapes = {name: np.shape(value) for name, value in state.items()}
        if shapes != {name: value.shape for name, value in self.state().items()}:
            raise ConfigError("the checkpoint's statistics do not fit its configuration; choose another checkpoint")
        for name, moments in self._moments.items():
            moments.restore({key: state[f"{name}_{key}"] for key in moments.state()})
        self._refresh()


def normaliser_for(config: Env, spaces: Spaces) -> Normaliser:
    """Make what the configuration asks for; ConfigError if observations are pictures."""
    shape = spaces.observation.shape
    if config.normalise_observations and len(shape) > 1:
        raise ConfigError(
            "env.normalise_observations=true: is for vectors, and observations are pictures; set it to false, and"
            " model.torso=nips or nature"
        )
    return Normaliser(shape[0] if config.normalise_observations else 0, config.normalise_rewards)
