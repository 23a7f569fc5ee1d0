"""Episodes of an evaluation: a few simulators side by side, each played once from its own seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.actors.choosing import Seen, chooser
from dba3c.actors.segment import remembered
from dba3c.config.schema import Config
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.types import Array, Policy, Step, VectorEnv

GROUP = 4  # simulators that step together; a group leaves when its last episode ends, so small groups waste few steps
STUCK_STEPS = 250  # unchanged observations (17 s of play) after which a greedy policy would repeat itself for ever

MakeEnv = Callable[[int], VectorEnv]
Watch = Callable[[int], None]  # told how many of this rank's episodes are over


class PlayedEpisode(NamedTuple):
    """One episode: its raw score, and the actions that play it again from the same seed."""

    score: float
    actions: list[Array]
    cut: bool = False  # it had not come to its end: a length limit, or a greedy policy that repeats itself, ended it


class EpisodeGroup:
    """A few episodes side by side."""

    def __init__(self, env: VectorEnv, numbers: Array, seeds: Array, memory_size: int, may_be_stuck: bool) -> None:
        self.env = env
        self._numbers = numbers  # in the whole evaluation
        self._seeds = seeds
        self._memory_size = memory_size
        # A picture that stays the same for long says that nothing happens; other numbers may hide what changes.
        self._may_be_stuck = may_be_stuck and env.observation_space.dtype == np.uint8
        self._start()

    def _start(self) -> None:
        count = self.env.n_sim
        self._observations = self.env.reset(self._seeds)
        self._memory = np.zeros((count, self._memory_size), np.float32)
        self._steps = 0
        self._scores = np.zeros(count)
        self._actions: list[list[Array]] = [[] for _ in range(count)]
        self._running = np.ones(count, bool)
        self._unchanged = np.zeros(count, np.int64)
        self._cut = np.zeros(count, bool)

    @property
    def finished(self) -> int:
        return int(np.sum(~self._running))

    @property
    def seen(self) -> Seen:
        return Seen(self._observations, self._memory, self._numbers, np.full(self.env.n_sim, self._steps))

    def step(self, actions: Array, memory: Array) -> None:
        step = self.env.step(actions)
        if step.rebuilt:
            self._start()
            return
        for number in np.flatnonzero(self._running):
            self._actions[number].append(actions[number].copy())
        self._scores += step.rewards * self._running
        stuck = self._stuck(step)
        self._cut |= self._running & (stuck | step.cut if len(step.cut) else stuck)
        self._running &= ~step.ended & ~stuck
        self._memory = remembered(memory, step)
        self._observations = step.observations
        self._steps += 1

    def _stuck(self, step: Step) -> Array:
        """Say whose policy repeats itself: [n]. One that leaves something to chance never does so for ever."""
        same = (step.observations == self._observations).reshape(self.env.n_sim, -1).all(axis=1)
        self._unchanged = np.where(same, self._unchanged + 1, 0)
        return (self._unchanged >= STUCK_STEPS) & ~step.ended & self._may_be_stuck

    def close(self) -> list[PlayedEpisode]:
        self.env.close()
        every = zip(self._scores, self._actions, self._cut, strict=True)
        return [PlayedEpisode(float(score), played, bool(cut)) for score, played, cut in every]


def seeds_of(config: Config, policy: Policy, numbers: Array) -> Array:
    """Return the seeds of the episodes with these numbers; with evaluate.starts, the numbers of their start points."""
    if config.evaluate.starts != "none":
        return numbers
    return game_seeds(config.train.seed, EVALUATION, policy.version, numbers)


def play(config: Config, policy: Policy, make_env: MakeEnv, numbers: Array, watch: Watch) -> list[PlayedEpisode]:
    """Play the episodes with these numbers; all predictions of a step go through the network together."""
    if not len(numbers):
        return []
    greedy, seeds = config.evaluate.policy == "greedy", seeds_of(config, policy, numbers)
    parts = np.array_split(np.arange(len(numbers)), -(-len(numbers) // GROUP))
    groups = running = [
        EpisodeGroup(make_env(len(part)), numbers[part], seeds[part], policy.memory_size, greedy) for part in parts
    ]
    choose = chooser(config, policy, groups[0].env)
    while running:
        seen = [group.seen for group in running]
        actions, memory = choose(Seen(*map(np.concatenate, zip(*seen, strict=True))))
        ends = np.cumsum([group.env.n_sim for group in running])[:-1]
        for group, *chosen in zip(running, np.split(actions, ends), np.split(memory, ends), strict=True):
            group.step(*chosen)
        watch(sum(group.finished for group in groups))
        running = [group for group in running if group.finished < group.env.n_sim]
    return [episode for group in groups for episode in group.close()]
