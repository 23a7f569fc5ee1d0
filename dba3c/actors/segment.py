"""Segments of play being written: what lockstep and async players share."""

from __future__ import annotations

import numpy as np

from dba3c.config.schema import Config
from dba3c.learning.returns import n_step_returns
from dba3c.types import Array, Batch, Episode, Prediction, Step, VectorEnv

ARRAYS = tuple(name for name in Batch._fields if name != "episodes")


class Rollout:
    """n_steps of B simulators in preallocated time-major buffers; full after as many `predicted` / `stepped` pairs."""

    def __init__(self, config: Config, env: VectorEnv) -> None:
        self._gamma, self._reward_clip = np.float32(config.algorithm.gamma), np.float32(config.env.reward_clip)
        self._n_steps = config.actor.n_steps
        shape = (self._n_steps, env.n_sim)
        self._observations = np.zeros((*shape, *env.observation_shape), np.uint8)
        self._actions = np.zeros(shape, np.int32)
        self._log_probabilities = np.zeros(shape, np.float32)
        self._rewards = np.zeros(shape, np.float32)
        self._discounts = np.zeros(shape, np.float32)
        self._values = np.zeros((self._n_steps + 1, env.n_sim), np.float32)
        self._versions = np.zeros(shape, np.int64)
        self._t = 0

    @property
    def full(self) -> bool:
        return self._t == self._n_steps

    def predicted(self, observations: Array, prediction: Prediction, version: int) -> None:
        """Begin step t: what was seen, and what was chosen with the weights of update `version`."""
        self._observations[self._t] = observations
        self._actions[self._t] = prediction.actions
        self._log_probabilities[self._t] = prediction.log_probabilities
        self._values[self._t] = prediction.values
        self._versions[self._t] = version

    def stepped(self, step: Step) -> None:
        """End step t: what the simulators answered; if they were lost, the segment has no end and starts anew."""
        if step.lost:
            self.clear()
            return
        self._rewards[self._t] = np.clip(step.rewards, -self._reward_clip, self._reward_clip)
        self._discounts[self._t] = np.where(step.terminal, np.float32(0), self._gamma)
        self._t += 1

    def finish(self, bootstrap: Array, episodes: list[Episode]) -> Batch:
        """The full segment as a batch of views; the buffers are free again once the batch has been used."""
        self._values[-1] = bootstrap
        self._t = 0
        return Batch(
            self._observations,
            self._actions,
            self._log_probabilities,
            self._rewards,
            self._discounts,
            self._values,
            self._versions,
            episodes,
        )

    def clear(self) -> None:
        self._t = 0


def as_transitions(segment: Batch) -> Batch:
    """The same data as T·B segments of one step whose reward is the n-step return: they may be cut anywhere."""
    returns = n_step_returns(segment.rewards, segment.discounts, segment.values[-1])
    flat = (1, segment.samples)
    return Batch(
        observations=segment.observations.reshape(*flat, *segment.observations.shape[2:]).copy(),
        actions=segment.actions.reshape(flat).copy(),
        log_probabilities=segment.log_probabilities.reshape(flat).copy(),
        rewards=returns.reshape(flat),
        discounts=np.zeros(flat, np.float32),
        values=np.stack([segment.values[:-1].reshape(-1), np.zeros(segment.samples, np.float32)]),
        versions=segment.versions.reshape(flat).copy(),
        episodes=segment.episodes,
    )


def join(batches: list[Batch]) -> Batch:
    """Batches of equal T side by side."""
    arrays = {name: np.concatenate([getattr(batch, name) for batch in batches], axis=1) for name in ARRAYS}
    return Batch(**arrays, episodes=[episode for batch in batches for episode in batch.episodes])


def cut(batch: Batch, segments: int) -> tuple[Batch, Batch]:
    """The first `segments` columns, with the episodes, and the rest."""
    first = {name: getattr(batch, name)[:, :segments] for name in ARRAYS}
    rest = {name: getattr(batch, name)[:, segments:] for name in ARRAYS}
    return Batch(**first, episodes=batch.episodes), Batch(**rest, episodes=[])
