"""The first ranks of a job at work for some seconds: samples/s, waiting, and what a message costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.world import World
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.types import Json, Transport, Update

if TYPE_CHECKING:  # needs TensorFlow
    from mpi4py import MPI

    from dba3c.learning.agent import Agent
from collections.abc import Callable
from typing import TypeVar

WARM_UP_UPDATES = 2  # the first ones compile and meet cold caches


class Job(NamedTuple):
    """What the measurements of one job share."""

    world: World
    config: Config
    agent: Agent
    seconds: float


class Tally:
    """Adds up the updates after the warm-up, whose end starts the clock."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._start = 0.0
        self.updates = 0
        self.samples = 0
        self.seconds = 0.0
        self.wait_seconds = 0.0  # of all ranks
        self.compute_seconds: list[float] = []  # of each rank's part in each update

    def add(self, update: Update) -> None:
        if update.number == WARM_UP_UPDATES:
            self._start = time.perf_counter()
            self._deadline.start()
        elif update.number > WARM_UP_UPDATES:
            self.updates += 1
            self.samples += update.samples
            self.seconds = time.perf_counter() - self._start
            self.wait_seconds += update.sums.get("wait_seconds", 0.0)  # asynchronous: only rank 0 has the sums
            seconds = update.by_rank["compute_seconds"]
            self.compute_seconds += seconds[seconds > 0].tolist()  # of those whose gradients are in it


def make_job(world: World, preset: str, game: str, seconds: float, *overrides: str) -> Job:
    """Build the preset's agent; a rank's batch is what its simulators play."""
    from dba3c.training import build

    config = loading.load(preset, [f"env.game={game}", "train.batch_size=auto", *overrides])
    return Job(world, config, build.agent(config), seconds)


def row(job: Job, count: int, n_sim: int) -> Json:
    """Measure the first `count` ranks with `n_sim` simulators each, while the others sleep; the same on every rank."""
    measured = on_first(job.world, count, lambda comm: row_of(job, comm, n_sim))
    result: Json = job.world.comm.bcast(measured)
    return result


def row_of(job: Job, comm: MPI.Intracomm, n_sim: int) -> Json:
    """Measure the ranks of an MPI communicator."""
    config = job.config.model_copy(update={"env": job.config.env.model_copy(update={"n_sim": n_sim})})
    tally = trained(job, config, comm)
    return {
        "ranks": comm.size,
        "hosts": len(set(job.world.hosts[: comm.size])),
        "games_per_rank": n_sim,
        "effective_batch": config.batch_size * comm.size,
        "points_per_second": tally.samples / tally.seconds,
        "updates_per_second": tally.updates / tally.seconds,
        "wait_share": tally.wait_seconds / tally.seconds / comm.size,
        "compute_seconds": float(np.mean(tally.compute_seconds)),
        "compute_spread": float(np.std(tally.compute_seconds)),
        "compute_samples": tally.compute_seconds,
    }


def trained(job: Job, config: Config, comm: MPI.Intracomm) -> Tally:
    """Train on the ranks of an MPI communicator until the time is over."""
    from dba3c.comm.mpi import MpiTransport
    from dba3c.training import build
    from dba3c.training.loop import updates

    timings = Timings()
    progress = Progress()
    deadline = Deadline(job.seconds)
    tally = Tally(deadline)
    rule = build.optimizer(config, job.agent)
    owners = build.owners(config.comm, job.world.hosts[: comm.size])
    strategy = build.strategy(config, MpiTransport(comm), job.agent, rule, timings, progress, owners=owners)
    actor = build.actor(config, job.agent, comm.rank, job.world.threads, timings)
    actor.restart(0)
    for update in updates(actor, job.agent, strategy, progress, 2**62, deadline.passed, timings):
        tally.add(update)
    actor.close()
    meet(comm)
    strategy.close()
    return tally


def allreduce_milliseconds(job: Job, transport_name: str) -> float:
    """Measure an all-reduce of a message of the network's size over all ranks: the median of many."""
    from dba3c.comm import make_transport

    transport: Transport = make_transport(transport_name, job.world.comm)
    message = np.zeros(job.agent.layout.total, np.float32)
    times = []
    for _ in range(50):
        job.world.comm.Barrier()
        start = time.perf_counter()
        transport.sum(message)
        times.append(time.perf_counter() - start)
    return float(np.median(transport.gather(float(np.median(times))))) * 1e3


T = TypeVar("T")


class Deadline:
    """Passes some seconds after `start`; never on ranks that do not call it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = float("inf")

    def start(self) -> None:
        self._end = time.monotonic() + self._seconds

    def passed(self) -> bool:
        return time.monotonic() >= self._end


def on_first(world: World, count: int, work: Callable[[MPI.Intracomm], T]) -> T | None:
    """Call `work` on the first `count` ranks with their MPI communicator; return None on the others.

    The others must not wait in MPI, which waits at full speed: they sleep and leave the cores to those that work.
    """
    working = world.rank < count
    part = world.split(working)
    result = work(part) if working else None
    part.Free()
    meet(world.comm)
    return result


def meet(comm: MPI.Intracomm) -> None:
    """Wait for the other ranks asleep."""
    finished = comm.Ibarrier()
    while not finished.Test():
        time.sleep(0.01)
