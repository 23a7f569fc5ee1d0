"""The asynchronous actor of BA3C: whichever simulators are ready are predicted together and continue.

One thread per group of simulators steps them, one thread predicts, the learner takes batches from a small queue.
No group may be more than n_steps ahead of the slowest, so the age of every sample is bounded (`lag_bound`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np

from dba3c.actors import MakeSimulators
from dba3c.actors.episodes import RunningEpisodes
from dba3c.actors.segment import Segment, as_transitions, cut, final_values, join, remembered
from dba3c.config.schema import Config
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.timings import Timings
from dba3c.types import Array, Batch, Episode, Policy, Prediction, Step, VectorEnv


def lag_bound(config: Config) -> int:
    """Most updates that can pass between the choice of an action and the update that learns from it.

    From the choice to the end of its segment every simulator puts at most 4·n_steps samples before it in line:
    n_steps that were open, n_steps that it may have been behind, n_steps until the segment ends, n_steps that it may
    get ahead. Before those stand an unfinished batch, one in the actor's hand, the queue and the one being learned.
    """
    ahead = 4 * config.actor.n_steps * config.env.n_sim + config.batch_size - 1
    return -(-ahead // config.batch_size) + config.actor.queue_batches + 2


def make(
    config: Config, simulators: MakeSimulators, policy: Policy, first_simulator: int, _threads: int, timings: Timings
) -> Async:
    """Make the actor with its simulators in groups, each of which a thread of its own steps."""
    size = config.actor.group_size
    starts = range(first_simulator, first_simulator + config.env.n_sim, size)
    return Async(config, [simulators(start, size, 1) for start in starts], policy, first_simulator, timings)


class Group:
    """Simulators that step together in a thread of their own, and the segment they are in."""

    def __init__(self, config: Config, env: VectorEnv, first_simulator: int, memory_size: int) -> None:
        self.env = env
        self.simulators = first_simulator + np.arange(env.n_sim)  # numbers in the whole job
        self.segment = Segment(config, env, memory_size)
        self.memory = np.zeros((env.n_sim, memory_size), np.float32)
        self._whole = config.whole_segments
        self.actions: queue.SimpleQueue[Array | None] = queue.SimpleQueue()

    def restart(self, seeds: Array) -> None:
        self.segment.clear()
        self.running = RunningEpisodes(self.env.n_sim)
        self.episodes: list[Episode] = []
        self.memory = np.zeros_like(self.memory)
        self.steps = 0
        self.observations = self.env.reset(seeds)

    def run(self, answers: queue.SimpleQueue[tuple[Group, Step] | Exception]) -> None:
        """Step whenever actions come, until None does."""
        try:
            while (actions := self.actions.get()) is not None:
                answers.put((self, self.env.step(actions)))
        except Exception as error:
            answers.put(error)

    def answered(self, step: Step, policy: Policy) -> None:
        bootstraps = final_values(policy, step, self.simulators, self.memory)
        self.segment.stepped(step, bootstraps, policy.reward_scale)
        self.episodes += self.running.count(step)
        self.memory = remembered(self.memory, step)
        self.observations = step.observations
        self.steps += 1

    def predicted(self, prediction: Prediction, version: int) -> Batch | None:
        """Begin the next step; return the segment that it closes, if one was full."""
        finished = None
        if self.segment.full:
            segment = self.segment.finish(self.observations, prediction, self.episodes)
            # Either way the arrays are copied, as the segment's are used again.
            finished = join([segment]) if self._whole else as_transitions(segment)
            self.episodes = []
        self.segment.predicted(self.observations, prediction, version, self.memory)
        self.memory = prediction.memory
        self.chosen = prediction.actions
        return finished


class Async:
    """Plays in the background from `restart` to `close`; `next` waits for a batch, cut from finished segments."""

    def __init__(
        self, config: Config, envs: list[VectorEnv], policy: Policy, first_simulator: int, timings: Timings
    ) -> None:
        self._seed = config.train.seed
        self._batch_size = config.batch_size
        self._skew = config.actor.n_steps
        self._policy = policy
        self._timings = timings
        size = config.actor.group_size
        self._groups = [
            Group(config, env, first_simulator + number * size, policy.memory_size) for number, env in enumerate(envs)
        ]
        self._answers: queue.SimpleQueue[tuple[Group, Step] | Exception] = queue.SimpleQueue()
        self._batches: queue.Queue[Batch | Exception] = queue.Queue(config.actor.queue_batches)
        self._thread: threading.Thread | None = None
        self._playing = threading.Event()
        self._steppers = [threading.Thread(target=g.run, args=(self._answers,), daemon=True) for g in self._groups]
        for thread in self._steppers:
            thread.start()

    def restart(self, update: int) -> None:
        self._halt()
        self._start = update
        for group in self._groups:
            group.restart(game_seeds(self._seed, GAMES, update, group.simulators))
        self._pool: list[Batch] = []
        self._playing.set()
        self._thread = threading.Thread(target=self._play, daemon=True, name="actor")
        self._thread.start()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        with self._timings.measure("play"):
            batch = self._batches.get()
        if isinstance(batch, Exception):
            self._batches.put(batch)  # whoever asks again gets the same answer
            raise batch
        return batch

    def _play(self) -> None:
        """Run the actor thread: predict for groups that are ready, send on those that may go, collect answers."""
        try:
            ready, held = list(self._groups), list[Group]()
            while self._playing.is_set():
                self._predict(ready)
                held = self._send(held + ready)
                ready = self._collect()
            for _ in range(len(self._groups) - len(held) - len(ready)):
                self._answers.get()  # leave no step in flight
        except Exception as error:
            self._batches.put(error)

    def _predict(self, ready: list[Group]) -> None:
        noise = [action_noise(self._seed, self._start, g.simulators, g.steps, self._policy.noise_size) for g in ready]
        version = self._policy.version  # before the weights are read: never claims to be newer than it is
        prediction = self._policy.act(
            np.concatenate([g.observations for g in ready]),
            np.concatenate(noise),
            np.concatenate([g.simulators for g in ready]),
            np.concatenate([g.memory for g in ready]),
        )
        ends = np.cumsum([len(g.simulators) for g in ready])[:-1]
        for group, *parts in zip(ready, *(np.split(array, ends) for array in prediction), strict=True):
            segment = group.predicted(Prediction(*parts), version)
            if segment is not None:
                self._deliver(segment)

    def _send(self, groups: list[Group]) -> list[Group]:
        """Send on the groups that are not too far ahead; those that must wait."""
        slowest = min(group.steps for group in self._groups)
        for group in groups:
            if group.steps - slowest < self._skew:
                group.actions.put(group.chosen)
        return [group for group in groups if group.steps - slowest >= self._skew]

    def _collect(self) -> list[Group]:
        """Wait until one group's step is done; that group and all others that are ready by then."""
        answers = [self._answers.get()]
        while not self._answers.empty():
            answers.append(self._answers.get())
        ready = []
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            group, step = answer
            group.answered(step, self._policy)
            ready.append(group)
        return ready

    def _deliver(self, segment: Batch) -> None:
        """Add a segment to the pool and pass on the batches that it fills; waits while the queue is full."""
        self._pool.append(segment)
        while self._playing.is_set() and sum(part.samples for part in self._pool) >= self._batch_size:
            joined = join(self._pool)
            batch, rest = cut(joined, self._batch_size // len(joined.rewards))
            self._pool = [rest]
            self._batches.put(batch)

    def _halt(self) -> None:
        """Stop the actor thread; what it had not delivered is dropped with its episodes."""
        self._playing.clear()
        while self._thread is not None and self._thread.is_alive():
            self._drain()  # it may be waiting for a place in the queue
            self._thread.join(0.01)
        self._drain()

    def _drain(self) -> None:
        try:
            while True:
                self._batches.get_nowait()
        except queue.Empty:
            pass

    def close(self) -> None:
        self._halt()
        for group in self._groups:
            group.actions.put(None)
        for thread, group in zip(self._steppers, self._groups, strict=True):
            thread.join()
            group.env.close()
