"""The asynchronous actor of BA3C: whichever simulators are ready are predicted together and continue.

One thread per group of simulators steps them, some threads predict, the learner takes batches from a small queue.
No group may be more than n_steps ahead of the slowest, so the age of every sample is bounded (`lag_bound`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np

from dba3c.actors import MakeSimulators
from dba3c.actors.groups import Answer, Answers, Group, Pack
from dba3c.actors.segment import cut, join
from dba3c.actors.self_tuning import MOST_THREADS, Crew, crew_of
from dba3c.config.schema import Config
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.timings import Timings
from dba3c.types import Batch, Policy, Prediction, VectorEnv


def lag_bound(config: Config) -> int:
    """Most updates that can pass between the choice of an action and the update that learns from it.

    From the choice to the end of its segment every simulator puts at most 4·n_steps samples before it in line:
    n_steps that were open, n_steps that it may have been behind, n_steps until the segment ends, n_steps that it may
    get ahead. Before those stand an unfinished batch, one in the actor's hand, the queue and those being learned.
    Groups that rest have delivered what they had played.
    """
    ahead = 4 * config.actor.n_steps * config.env.n_sim + config.batch_size - 1
    learned = max(MOST_THREADS, config.actor.trainers) if config.actor.self_tuning else config.actor.trainers
    return -(-ahead // config.batch_size) + config.actor.queue_batches + 1 + learned


def make(
    config: Config, simulators: MakeSimulators, policy: Policy, first_simulator: int, _threads: int, timings: Timings
) -> Async:
    """Make the actor with its simulators in groups, each of which a thread of its own steps."""
    size = config.actor.group_size
    starts = range(first_simulator, first_simulator + config.env.n_sim, size)
    return Async(config, [simulators(start, size, 1) for start in starts], policy, first_simulator, timings)


class Async:
    """Plays in the background from `restart` to `close`; `next` waits for a batch, cut from finished segments.

    `crew` says how many groups play and how many threads predict; who changes that changes it while they work.
    """

    def __init__(
        self, config: Config, envs: list[VectorEnv], policy: Policy, first_simulator: int, timings: Timings
    ) -> None:
        self.crew: Crew = crew_of(config)
        self._seed = config.train.seed
        self._batch_size = config.batch_size
        self._policy = policy
        self._timings = timings
        size = config.actor.group_size
        self._groups = [
            Group(config, env, first_simulator + number * size, policy.memory_size) for number, env in enumerate(envs)
        ]
        self._pack = Pack(self._groups, config.actor.n_steps)
        self._answers: Answers = queue.SimpleQueue()
        self._batches: queue.Queue[Batch | None] = queue.Queue(config.actor.queue_batches)
        self._error: Exception | None = None
        self._playing = threading.Event()
        self._lock = threading.Lock()  # of the pack, the pool and the predicting threads
        self._predictors: dict[int, threading.Thread] = {}
        self._steppers = [threading.Thread(target=g.run, args=(self._answers,), daemon=True) for g in self._groups]
        for thread in self._steppers:
            thread.start()

    def restart(self, update: int) -> None:
        self._halt()
        self._start = update
        for group in self._groups:
            group.restart(game_seeds(self._seed, GAMES, update, group.simulators))
        self._pool: list[Batch] = []
        self._pack.restart(self.crew["agents"])
        for group in self._pack.playing:
            self._answers.put(Answer(group))
        self._playing.set()
        with self._lock:
            self._hire()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        with self._timings.measure("play"):
            batch = self._batches.get() if self._error is None else None
        if self._error is not None:
            raise self._error
        assert batch is not None, "None is put for an error only"
        return batch

    def _hire(self) -> None:
        """Start the predicting threads that are missing."""
        for number in range(self.crew["predictors"]):
            if number not in self._predictors or not self._predictors[number].is_alive():
                thread = threading.Thread(target=self._play, args=(number,), daemon=True, name=f"predictor {number}")
                self._predictors[number] = thread
                thread.start()

    def _play(self, number: int) -> None:
        """Run a predicting thread: collect groups that are ready, predict for them, send on those that may go."""
        try:
            while self._playing.is_set() and number < self.crew["predictors"]:
                if ready := self._collect():
                    self._predict(ready)
        except Exception as error:
            self._error = error
            self._batches.put(None)

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
        each = [Prediction(*parts) for parts in zip(*(np.split(array, ends) for array in prediction), strict=True)]
        segments = [group.close(one) for group, one in zip(ready, each, strict=True)]
        with self._lock:
            begun = []
            for group, one, segment in zip(ready, each, segments, strict=True):
                if segment is not None:
                    self._deliver(segment)
                if segment is None or not self._pack.rest(group, self.crew["agents"]):
                    group.begin(one, version)
                    begun.append(group)
            self._send(begun)

    def _send(self, groups: list[Group]) -> None:
        """Send on the groups that are not too far ahead, and see that as many work as should."""
        for group in self._pack.released(groups):
            group.go()
        for group in self._pack.woken(self.crew["agents"]):
            self._answers.put(Answer(group))
        if self._playing.is_set():
            self._hire()

    def _collect(self) -> list[Group]:
        """Wait until one group's step is done; that group and all others that are ready by then."""
        answers = [self._answers.get()]
        while not self._answers.empty():
            try:
                answers.append(self._answers.get_nowait())
            except queue.Empty:
                break  # another thread was faster
        told = [answer for answer in answers if answer is not None]
        for answer in told:
            answer.group.stepping = False
        for group, step, error in told:
            if error is not None:
                raise error
            if step is not None:
                group.answered(step, self._policy)
        return [group for group, _, _ in told]

    def _deliver(self, segment: Batch) -> None:
        """Add a segment to the pool and pass on the batches that it fills; waits while the queue is full."""
        self._pool.append(segment)
        while self._playing.is_set() and sum(part.samples for part in self._pool) >= self._batch_size:
            joined = join(self._pool)
            batch, rest = cut(joined, self._batch_size // len(joined.rewards))
            self._pool = [rest]
            self._batches.put(batch)

    def _halt(self) -> None:
        """Stop the predicting threads and the steps in flight; what was not delivered is dropped with its episodes."""
        self._playing.clear()
        while working := [thread for thread in self._predictors.copy().values() if thread.is_alive()]:
            self._drain()  # one may be waiting for a place in the queue
            self._answers.put(None)  # or for an answer
            working[0].join(0.01)
        while any(group.stepping for group in self._groups):
            if answer := self._answers.get():
                answer.group.stepping = False
        while not self._answers.empty():
            self._answers.get()
        self._drain()
        self._error = None

    def _drain(self) -> None:
        try:
            while True:
                self._batches.get_nowait()
        except queue.Empty:
            pass

    def close(self) -> None:
        self._halt()
        for group in self._groups:
            group.end()
        for thread, group in zip(self._steppers, self._groups, strict=True):
            thread.join()
            group.env.close()
