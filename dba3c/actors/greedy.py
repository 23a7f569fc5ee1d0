"""Greedy episodes: a few simulators side by side, each played once from its own seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.actors.segment import remembered
from dba3c.types import Array, Policy, VectorEnv

GROUP = 4  # simulators that step together; a group leaves when its last episode ends, so small groups waste few steps
STUCK_STEPS = 250  # unchanged observations (17 s of play) after which a greedy policy would repeat itself for ever

MakeEnv = Callable[[int], VectorEnv]
Watch = Callable[[int], None]  # told how many of this rank's episodes are over


class GreedyEpisode(NamedTuple):
    """One greedy episode: its raw score, and the actions that play it again from the same seed."""

    score: float
    actions: list[Array]
    cut: bool = False  # it had not come to its end: a length limit, or a policy that repeats itself, ended it


class GreedyGroup:
    """A few episodes side by side."""

    def __init__(self, env: VectorEnv, seeds: Array, memory_size: int) -> None:
        self._env = env
        self._seeds = seeds
        self._memory_size = memory_size
        self._pictures = env.observation_space.dtype == np.uint8  # numbers may stand still while time goes by
        self._start()

    def _start(self) -> None:
        count = self._env.n_sim
        self.observations = self._env.reset(self._seeds)
        self.memory = np.zeros((count, self._memory_size), np.float32)
        self.scores = np.zeros(count)
        self._actions: list[list[Array]] = [[] for _ in range(count)]
        self._running = np.ones(count, bool)
        self._unchanged = np.zeros(count, np.int64)
        self._cut = np.zeros(count, bool)

    @property
    def finished(self) -> int:
        return int(np.sum(~self._running))

    def step(self, actions: Array, memory: Array) -> None:
        step = self._env.step(actions)
        if step.rebuilt:
            self._start()
            return
        for number in np.flatnonzero(self._running):
            self._actions[number].append(actions[number].copy())
        self.scores += step.rewards * self._running
        same = (step.observations == self.observations).reshape(len(actions), -1).all(axis=1)
        self._unchanged = np.where(same, self._unchanged + 1, 0)
        stuck = (self._unchanged >= STUCK_STEPS) & ~step.ended & self._pictures
        self._cut |= self._running & (stuck | step.cut if len(step.cut) else stuck)
        self._running &= ~step.ended & ~stuck
        self.memory = remembered(memory, step)
        self.observations = step.observations

    def close(self) -> list[GreedyEpisode]:
        self._env.close()
        every = zip(self.scores, self._actions, self._cut, strict=True)
        return [GreedyEpisode(float(score), played, bool(cut)) for score, played, cut in every]


def play(policy: Policy, make_env: MakeEnv, seeds: Array, watch: Watch) -> list[GreedyEpisode]:
    """Play one greedy episode per seed; all predictions of a step go through the network together."""
    if not len(seeds):
        return []
    parts = np.array_split(seeds, -(-len(seeds) // GROUP))
    groups = running = [GreedyGroup(make_env(len(part)), part, policy.memory_size) for part in parts]
    while running:
        observations = np.concatenate([group.observations for group in running])
        actions, memory = policy.greedy(observations, np.concatenate([group.memory for group in running]))
        ends = np.cumsum([len(group.scores) for group in running])[:-1]
        for group, *chosen in zip(running, np.split(actions, ends), np.split(memory, ends), strict=True):
            group.step(*chosen)
        watch(sum(group.finished for group in groups))
        running = [group for group in running if group.finished < len(group.scores)]
    return [episode for group in groups for episode in group.close()]
