"""Segments and episodes while they are being played: what the lockstep and the async actor share."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from dba3c.config.schema import Config
from dba3c.learning.returns import n_step_returns
from dba3c.types import BY_TIME, NOTHING, Array, Batch, Episode, Policy, Prediction, Step, Transport, VectorEnv

POLL_SECONDS = 0.0001  # between two looks whether another rank's batch has arrived

BY_STATE = ("observations", "actions", "values")  # [T + 1, B, …]


class Segment:
    """n_steps of B simulators in preallocated time-major buffers; full after as many `predicted` / `stepped` pairs.

    With actor.kind=episodes it is full when the episode of its one simulator is over, and grows until then.
    """

    def __init__(self, config: Config, env: VectorEnv, memory_size: int) -> None:
        self._gamma = np.float32(config.algorithm.gamma)
        self._reward_clip = np.float32(config.env.reward_clip)
        self._n_steps = config.actor.n_steps
        self._whole_episode = config.actor.kind == "episodes"
        self._t = 0
        observation, action = env.observation_space, env.action_space
        steps = (self._n_steps, env.n_sim)
        states = (self._n_steps + 1, env.n_sim)
        self._observations = np.zeros((*states, *observation.shape), observation.dtype)
        self._actions = np.zeros((*states, *(action.shape or ())), action.dtype)
        self._log_probabilities = np.zeros(steps, np.float32)
        self._rewards = np.zeros(steps, np.float32)
        self._discounts = np.zeros(steps, np.float32)
        self._past_returns = np.zeros(steps, np.float32)
        self._ended = np.zeros(steps, bool)
        self._values = np.zeros(states, np.float32)
        self._versions = np.zeros(steps, np.int64)
        self._memory = np.zeros((env.n_sim, memory_size), np.float32)
        self._returns = np.zeros(env.n_sim, np.float32)  # of the episodes so far

    @property
    def simulators(self) -> int:
        return len(self._memory)

    @property
    def full(self) -> bool:
        if self._whole_episode:
            return self._t > 0 and bool(self._ended[self._t - 1, 0])
        return self._t == self._n_steps

    def predicted(self, observations: Array, prediction: Prediction, version: int, memory: Array) -> None:
        """Begin step t: what was seen and remembered, and what was chosen with the weights of update `version`."""
        if self._t == 0:
            self._memory[:] = memory
        self._write_state(observations, prediction)
        self._log_probabilities[self._t] = prediction.log_probabilities
        self._versions[self._t] = version

    def stepped(self, step: Step, bootstraps: Array, reward_scale: float = 1.0) -> None:
        """End step t: what the simulators answered; `bootstraps` are the values of the step's final observations.

        If the simulators were rebuilt, the segment has no end and starts over.
        """
        if step.rebuilt:
            self.clear()
            return
        self._returns = self._gamma * self._returns + step.rewards.astype(np.float32)
        self._past_returns[self._t] = self._returns
        self._returns[step.ended] = 0
        rewards = step.rewards * reward_scale if reward_scale != 1.0 else step.rewards
        rewards = np.clip(rewards, -self._reward_clip, self._reward_clip) if self._reward_clip else rewards
        if len(bootstraps) and not self._whole_episode:
            rewards = rewards.astype(np.float32)
            rewards[truncated(step)] += self._gamma * bootstraps
        self._rewards[self._t] = rewards
        self._discounts[self._t] = np.where(step.terminal | step.ended, np.float32(0), self._gamma)
        self._ended[self._t] = step.ended
        self._t += 1

    def finish(self, observations: Array, prediction: Prediction, episodes: list[Episode]) -> Batch:
        """Close the full segment with the state after it; the batch consists of views, valid until `predicted`."""
        self._write_state(observations, prediction)
        steps, self._t = self._t, 0
        return self._batch(steps, episodes)

    def _batch(self, steps: int, episodes: list[Episode]) -> Batch:
        arrays = {name: getattr(self, f"_{name}") for name in BY_TIME}
        arrays = {name: array[: steps + 1 if name in BY_STATE else steps] for name, array in arrays.items()}
        return Batch(**arrays, memory=self._memory, steps=arrays["rewards"].size, episodes=episodes)

    def blank(self) -> Batch:
        """Return a batch as long as this segment, of whatever it holds."""
        return self._batch(self._n_steps, [])

    def move_to(self, batch: Batch, where: slice) -> None:
        """Write into some simulators' part of a batch from now on."""
        for name in BY_TIME:
            setattr(self, f"_{name}", getattr(batch, name)[:, where])
        self._memory = batch.memory[where]

    def clear(self) -> None:
        self._t = 0
        self._returns[:] = 0

    def _grow(self) -> None:
        """Make room for twice as many steps."""
        for name in BY_TIME:
            array = getattr(self, f"_{name}")
            setattr(self, f"_{name}", np.concatenate([array, np.zeros_like(array)]))

    def _write_state(self, observations: Array, prediction: Prediction) -> None:
        if self._t == len(self._rewards) and not self.full:
            self._grow()
        self._observations[self._t] = observations
        self._actions[self._t] = prediction.actions
        self._values[self._t] = prediction.values


class RunningEpisodes:
    """The episodes that a group of simulators is in."""

    def __init__(self, simulators: int) -> None:
        self._scores = np.zeros(simulators, np.float64)
        self._steps = np.zeros(simulators, np.int64)

    def count(self, step: Step) -> list[Episode]:
        """Add one step; return the episodes that ended with it. Those of rebuilt simulators never end."""
        if step.rebuilt:
            self._forget(slice(None))
            return []
        self._scores += step.rewards
        self._steps += 1
        ended = np.flatnonzero(step.ended)
        episodes = [Episode(float(self._scores[i]), int(self._steps[i])) for i in ended]
        self._forget(ended)
        return episodes

    def _forget(self, simulators: slice | np.ndarray) -> None:  # type: ignore[type-arg]
        self._scores[simulators] = 0.0
        self._steps[simulators] = 0


def truncated(step: Step) -> Array:
    """Say which simulators' episodes were cut off by a time limit."""
    return np.asarray(step.ended & ~step.terminal)


def final_values(policy: Policy, step: Step, simulators: Array, memory: Array) -> Array:
    """Value the final observations of truncated episodes; most steps have none."""
    if not len(step.final_observations):
        return NOTHING
    who = truncated(step)
    noise = np.zeros((len(step.final_observations), policy.noise_size), np.float32)
    return policy.act(step.final_observations, noise, simulators[who], memory[who]).values


def remembered(memory: Array, step: Step) -> Array:
    """Forget what belongs to episodes that are over."""
    over = step.ended | step.rebuilt
    return np.where(over[:, np.newaxis], np.float32(0), memory) if memory.shape[1] else memory


def as_transitions(segment: Batch) -> Batch:
    """Turn a segment into T·B segments of one n-step transition each: they may be cut anywhere.

    A transition's reward is the discounted sum of the rewards up to the segment's end, its discount the product of
    theirs, and the state after it is the one after the segment.
    """
    steps, simulators = segment.rewards.shape
    flat = (1, segment.samples)
    nothing = np.zeros(simulators, np.float32)
    discounts = np.cumprod(segment.discounts[::-1], axis=0)[::-1]

    def states(array: Array) -> Array:
        """[T + 1, B, …] → [2, T·B, …]: each state, and the one after the segment."""
        last = np.broadcast_to(array[-1], (steps, *array.shape[1:]))
        return np.stack([array[:-1], last]).reshape(2, segment.samples, *array.shape[2:])

    return Batch(
        observations=states(segment.observations),
        actions=states(segment.actions),
        log_probabilities=segment.log_probabilities.reshape(flat).copy(),
        rewards=n_step_returns(segment.rewards, segment.discounts, nothing).reshape(flat),
        past_returns=segment.past_returns.reshape(flat).copy(),
        discounts=discounts.reshape(flat).copy(),
        ended=segment.ended.reshape(flat).copy(),
        values=states(segment.values),
        versions=segment.versions.reshape(flat).copy(),
        memory=np.zeros((segment.samples, 0), np.float32),
        steps=segment.steps,
        episodes=segment.episodes,
    )


def join(batches: list[Batch]) -> Batch:
    """Put batches of equal T side by side."""
    arrays = {name: np.concatenate([getattr(batch, name) for batch in batches], axis=1) for name in BY_TIME}
    return Batch(
        **arrays,
        memory=np.concatenate([batch.memory for batch in batches]),
        steps=sum(batch.steps for batch in batches),
        episodes=[episode for batch in batches for episode in batch.episodes],
    )


def side_by_side(segments: Sequence[Segment]) -> Batch:
    """Let segments of one length, fresh ones, write into the arrays of one batch, which is returned."""
    batch = join([segment.blank() for segment in segments])
    start = 0
    for segment in segments:
        where = slice(start, start + segment.simulators)
        segment.move_to(batch, where)
        start = where.stop
    return batch


def exchange(transport: Transport, parts: list[Batch]) -> list[Batch]:
    """Send each rank its part; return what the ranks have sent to this one.

    No rank can be an exchange ahead, as all ranks take part in an update between two exchanges.
    """
    received = {transport.rank: parts[transport.rank]}
    for rank in range(transport.size):
        if rank != transport.rank:
            transport.send(rank, parts[rank])
    while len(received) < transport.size:
        arrived = transport.receive()
        if arrived is None:
            time.sleep(POLL_SECONDS)
        else:
            received[arrived[0]] = Batch(*arrived[1])
    return [received[rank] for rank in range(transport.size)]


def cut(batch: Batch, segments: int) -> tuple[Batch, Batch]:
    """Split newly played segments into the first ones, with the episodes, and the rest."""
    first = {name: getattr(batch, name)[:, :segments] for name in BY_TIME}
    rest = {name: getattr(batch, name)[:, segments:] for name in BY_TIME}
    steps = first["rewards"].size
    return (
        Batch(**first, memory=batch.memory[:segments], steps=steps, episodes=batch.episodes),
        Batch(**rest, memory=batch.memory[segments:], steps=batch.steps - steps, episodes=[]),
    )
