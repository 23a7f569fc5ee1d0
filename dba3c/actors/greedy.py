"""Greedy episodes: a few simulators side by side, each played once from its own seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.types import Array, Policy, VectorEnv

GROUP = 4  # games that step together; a group leaves when its last game is over, so small groups waste few steps
STUCK_STEPS = 250  # unchanged pictures (17 s of play) after which a greedy player would repeat itself for ever
MakeEnv = Callable[[int], VectorEnv]
Watch = Callable[[int], None]  # told how many of this rank's games are over


class Game(NamedTuple):
    """One greedy game: its raw score, and the actions that play it again from the same seed."""

    score: float
    actions: list[int]


class GreedyGames:
    """A few games side by side, each played once from its own seed."""

    def __init__(self, env: VectorEnv, seeds: Array) -> None:
        self._env, self._seeds = env, seeds
        self._start()

    def _start(self) -> None:
        self.observations = self._env.reset(self._seeds)
        self.scores = np.zeros(self._env.n_sim)
        self._actions: list[list[int]] = [[] for _ in range(self._env.n_sim)]
        self._running = np.ones(self._env.n_sim, bool)
        self._unchanged = np.zeros(self._env.n_sim, np.int64)

    @property
    def finished(self) -> int:
        return int(np.sum(~self._running))

    def step(self, actions: Array) -> None:
        step = self._env.step(actions)
        if step.lost:
            self._start()
            return
        for game in np.flatnonzero(self._running):
            self._actions[game].append(int(actions[game]))
        self.scores += step.rewards * self._running
        same = (step.observations == self.observations).all(axis=(1, 2, 3))
        self._unchanged = np.where(same, self._unchanged + 1, 0)
        self._running &= ~step.ended & (self._unchanged < STUCK_STEPS)
        self.observations = step.observations

    def close(self) -> list[Game]:
        self._env.close()
        return [Game(float(score), actions) for score, actions in zip(self.scores, self._actions, strict=True)]


def play(policy: Policy, make_env: MakeEnv, seeds: Array, watch: Watch) -> list[Game]:
    """One greedy game per seed; all predictions of a step go through the network together."""
    if not len(seeds):
        return []
    parts = np.array_split(seeds, -(-len(seeds) // GROUP))
    groups = running = [GreedyGames(make_env(len(part)), part) for part in parts]
    while running:
        actions = policy.greedy(np.concatenate([group.observations for group in running]))
        ends = np.cumsum([len(group.scores) for group in running])[:-1]
        for group, chosen in zip(running, np.split(actions, ends), strict=True):
            group.step(chosen)
        watch(sum(group.finished for group in groups))
        running = [group for group in running if group.finished < len(group.scores)]
    return [game for group in groups for game in group.close()]
