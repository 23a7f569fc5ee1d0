"""Ranks whose computing is a sleep, over the real strategies and transports; and a simulation of the same.

What is measured this way is everything but the arithmetic: who waits for whom, and what a message costs. So more ranks
than cores can be tried on one machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dba3c.actors.idle import Idle
from dba3c.benchmarks.training_ranks import Deadline, meet
from dba3c.config import loading, names
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.types import Actor, Array, Batch, Clock, Gradient, Strategy, Update

if TYPE_CHECKING:
    from mpi4py import MPI

STEPS = 5  # of a segment; a rank notices between two of them that an update went ahead without it
WARM_UP_UPDATES = 3
Steps = Callable[[np.random.Generator], Array]  # → seconds [ranks, STEPS] of the ranks' next segments


NONE = np.zeros((0, 0))
# Nothing was really played.
EMPTY = Batch(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, steps=0, episodes=[])


class Pattern(NamedTuple):
    """How long ranks compute."""

    seconds: float  # of one gradient on an ordinary rank
    slow_rank: int = -1
    factor: float = 1.0  # the slow rank's
    delayed: float = 0.0  # share of steps that are delayed, on any rank
    delay: float = 1.0  # their factor
    pause: float = 0.0  # seconds that the slow rank sleeps once

    def segments(self, ranks: int) -> Steps:
        """Return a function that draws a segment of every rank."""
        return lambda random: np.stack([self.steps(rank, random, STEPS) for rank in range(ranks)])

    def draw(self, random: np.random.Generator, rank: int) -> float:
        """Draw the seconds of a rank's next segment."""
        return float(self.steps(rank, random, STEPS).sum())

    def steps(self, rank: int, random: np.random.Generator, count: int) -> Array:
        """Draw the seconds of `count` steps of a rank."""
        base = self.seconds / STEPS * (self.factor if rank == self.slow_rank else 1.0)
        return base * np.where(random.random(count) < self.delayed, self.delay, 1.0)


class Way(NamedTuple):
    """How the ranks' gradients become updates; the keys are those of the section comm."""

    strategy: str = "allreduce"
    n_backup: int = 0
    servers: int = 1
    dedicated: bool = False  # the servers, which are the last ranks, do not compute

    @property
    def name(self) -> str:
        counts = {"backup": f" {self.n_backup}", "server": f" {self.servers}"}
        return self.strategy + counts.get(self.strategy, "")

    def gradients(self, ranks: int) -> int:
        """Count the gradients in one update."""
        return 1 if self.strategy == "server" else ranks - self.n_backup

    def owners(self, ranks: int) -> tuple[int, ...]:
        """Choose the ranks that own slices of the weights."""
        if self.strategy != "server":
            return ()
        return tuple(range(ranks - self.servers, ranks) if self.dedicated else range(self.servers))


class Sleeper:
    """Actor and agent in one: sleeps instead of playing, and always has the same gradient."""

    def __init__(self, pattern: Pattern, rank: int, parameters: int) -> None:
        self.version = 0
        self._pattern = pattern
        self._rank = rank
        self._random = np.random.default_rng((rank, 1))
        self._mean = np.ones(parameters, np.float32)
        self._started = time.monotonic()
        self._pause = pattern.pause if rank == pattern.slow_rank else 0.0

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        version = self.version
        for seconds in self._pattern.steps(self._rank, self._random, STEPS):
            if self.version != version:
                return None
            time.sleep(seconds)
        if self._pause and time.monotonic() - self._started > 2.0:
            time.sleep(self._pause)
            self._pause = 0.0
        return EMPTY

    def restart(self, update: int) -> None: ...
    def close(self) -> None: ...

    def gradients(self, _batch: Batch) -> Iterator[Gradient]:
        yield Gradient(self._mean, 1, 1, self.version, {}, {"max_lag": 0.0})


class Weights:
    """An optimizer that costs next to nothing."""

    shared = True

    def __init__(self, parameters: int) -> None:
        self.size = parameters
        self._values = np.zeros(parameters, np.float32)
        self._steps = 0

    def apply(self, gradient: Array, clock: Clock, scale: float | None = None) -> None:  # noqa: ARG002
        self._values -= gradient
        self._steps += 1

    def scale(self, _gradient: Array) -> float:
        return 1.0

    def apply_to(self, weights: Array, _slots: dict[str, Array], gradient: Array, *_rest: object) -> None:
        weights -= gradient

    def part(self, where: slice) -> Weights:
        return Weights(len(self._values[where]))

    def weights(self) -> Array:
        return self._values.copy()

    def load(self, weights: Array) -> None:
        self._values[:] = weights

    def state(self) -> dict[str, Array]:
        return {"steps": np.array(self._steps)}

    def restore(self, state: dict[str, Array]) -> None:
        self._steps = int(state["steps"])


class Observed(NamedTuple):
    """What ranks did after the warm-up."""

    updates_per_second: float
    late_share: list[float]  # of updates, by rank
    longest_update: float  # seconds


class Watch:
    """Notes when updates end and which ranks were late, from the end of the warm-up, which starts the clock."""

    def __init__(self, ranks: int, deadline: Deadline) -> None:
        self._deadline = deadline
        self._ends: list[float] = []
        self._late = np.zeros(ranks)

    def add(self, update: Update) -> None:
        if update.number == WARM_UP_UPDATES:
            self._deadline.start()
        if update.number >= WARM_UP_UPDATES:
            self._ends.append(time.perf_counter())
            self._late += update.by_rank.get("late", 0.0)

    def observed(self) -> Observed:
        gaps = np.diff(self._ends)
        late_share = (self._late / len(self._ends)).tolist()
        return Observed(len(gaps) / float(gaps.sum()), late_share, float(gaps.max()))


def observe(comm: MPI.Intracomm, pattern: Pattern, way: Way, seconds: float, parameters: int) -> Observed:
    """Let real ranks emulate computing for some seconds."""
    from dba3c.comm.allreduce import Surroundings
    from dba3c.comm.mpi import MpiTransport
    from dba3c.training.loop import updates

    keys = way.strategy, way.n_backup, way.servers, str(way.dedicated).lower()
    settings = loading.load(overrides=list(map("comm.{}={}".format, Way._fields, keys))).comm
    owners = way.owners(comm.size)
    sleeper = Sleeper(pattern, comm.rank, parameters)
    actor: Actor = Idle() if way.dedicated and comm.rank in owners else sleeper
    deadline = Deadline(seconds)
    watch = Watch(comm.size, deadline)
    timings = Timings()
    progress = Progress()

    def follow(update: Update, _clock: Clock) -> None:
        sleeper.version = update.number

    around = Surroundings(MpiTransport(comm), Weights(parameters), timings, Clock(0, 0, 2**62), follow, owners=owners)
    strategy: Strategy = names.find("comm.strategy", way.strategy)(settings, around)
    for update in updates(actor, sleeper, strategy, progress, 2**62, deadline.passed, timings):
        watch.add(update)
    meet(comm)  # slower ranks are served until they have come to the end, too
    strategy.close()
    return watch.observed()


def simulate(ranks: int, n_backup: int, steps: Steps, message_seconds: float, updates: int = 2000) -> float:
    """Compute the updates/s of ranks that exchange messages, event by event; `steps` draws their next segments."""
    random = np.random.default_rng(0)
    free = np.zeros(ranks)  # when each rank can begin its next segment
    now = 0.0
    for _ in range(updates):
        ends = np.maximum(free, now)[:, np.newaxis] + np.cumsum(steps(random), axis=1)  # [ranks, STEPS]
        ready = np.partition(ends[:, -1], ranks - n_backup - 1)[ranks - n_backup - 1]
        now = ready + message_seconds
        # Late ranks take the new weights after the step that they are in.
        in_step = np.where(ends >= now, ends, np.inf).min(axis=1)
        free = np.where(ends[:, -1] <= ready, now, np.minimum(in_step, ends[:, -1]))
    return updates / now
