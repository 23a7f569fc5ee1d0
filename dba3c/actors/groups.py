"""Groups of simulators of the async actor, each stepped by a thread of its own, and how they keep together."""

from __future__ import annotations

import queue
from typing import NamedTuple

import numpy as np

from dba3c.actors.segment import RunningEpisodes, Segment, as_transitions, final_values, join, remembered
from dba3c.config.schema import Config
from dba3c.types import Array, Batch, Episode, Policy, Prediction, Step, VectorEnv


class Answer(NamedTuple):
    """A group's report: the step that it has made, or the error that ended it; neither before its first step."""

    group: Group
    step: Step | None = None
    error: Exception | None = None


Answers = queue.SimpleQueue[Answer | None]  # None only wakes who waits


class Group:
    """Simulators that step together in a thread of their own, and the segment they are in. GA3C calls it an agent."""

    def __init__(self, config: Config, env: VectorEnv, first_simulator: int, memory_size: int) -> None:
        self.env = env
        self.simulators = first_simulator + np.arange(env.n_sim)  # numbers in the whole job
        self.segment = Segment(config, env, memory_size)
        self.memory = np.zeros((env.n_sim, memory_size), np.float32)
        self._whole = config.whole_segments
        self._actions: queue.SimpleQueue[Array | None] = queue.SimpleQueue()
        self.stepping = False

    def restart(self, seeds: Array) -> None:
        self.segment.clear()
        self.running = RunningEpisodes(self.env.n_sim)
        self.episodes: list[Episode] = []
        self.memory = np.zeros_like(self.memory)
        self.steps = 0
        self.position = 0  # steps, as the groups that play together count them
        self.observations = self.env.reset(seeds)

    def run(self, answers: Answers) -> None:
        """Step whenever actions come, until None does."""
        try:
            while (actions := self._actions.get()) is not None:
                answers.put(Answer(self, self.env.step(actions)))
        except Exception as error:
            answers.put(Answer(self, error=error))

    def go(self) -> None:
        """Let the thread make the step that was begun."""
        self.stepping = True
        self._actions.put(self.chosen)

    def end(self) -> None:
        self._actions.put(None)

    def answered(self, step: Step, policy: Policy) -> None:
        bootstraps = final_values(policy, step, self.simulators, self.memory)
        self.segment.stepped(step, bootstraps, policy.reward_scale)
        self.episodes += self.running.count(step)
        self.memory = remembered(self.memory, step)
        self.observations = step.observations
        self.steps += 1
        self.position += 1

    def close(self, prediction: Prediction) -> Batch | None:
        """Return the segment that a prediction closes, if one is full."""
        if not self.segment.full:
            return None
        segment = self.segment.finish(self.observations, prediction, self.episodes)
        self.episodes = []
        # Either way the arrays are copied, as the segment's are used again.
        return join([segment]) if self._whole else as_transitions(segment)

    def begin(self, prediction: Prediction, version: int) -> None:
        """Begin the next step."""
        self.segment.predicted(self.observations, prediction, version, self.memory)
        self.memory = prediction.memory
        self.chosen = prediction.actions


class Pack:
    """Groups that keep together: none gets more than `skew` steps ahead of the slowest of those that play.

    The others rest, between two segments, until more are to play.
    """

    def __init__(self, groups: list[Group], skew: int) -> None:
        self._groups = groups
        self._skew = skew
        self.playing: list[Group] = []
        self._held: list[Group] = []

    def restart(self, count: int) -> None:
        self.playing = self._groups[:count]
        self._held = []

    def rest(self, group: Group, count: int) -> bool:
        """Take a group out between two segments if more than `count` play; return whether it was taken out."""
        if len(self.playing) <= count:
            return False
        self.playing.remove(group)
        return True

    def released(self, groups: list[Group]) -> list[Group]:
        """Return the groups, of these and those held before, that are not too far ahead; hold the others."""
        slowest = self._slowest
        ready = self._held + groups
        self._held = [group for group in ready if group.position - slowest >= self._skew]
        return [group for group in ready if group.position - slowest < self._skew]

    def woken(self, count: int) -> list[Group]:
        """Return rested groups, which join those that play until these are `count`."""
        missing = count - len(self.playing)
        if missing <= 0:
            return []
        joining = [group for group in self._groups if group not in self.playing][:missing]
        slowest = self._slowest
        for group in joining:
            group.position = slowest
        self.playing += joining
        return joining

    @property
    def _slowest(self) -> int:
        return min(group.position for group in self.playing)
