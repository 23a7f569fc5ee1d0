"""Strong and weak scaling of the real trainer over rank counts, inside one job that any launcher started."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from rich.progress import Progress as Bar

from dba3c.benchmarks import launching
from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.world import World
from dba3c.run_files.progress import Progress
from dba3c.types import PARTS, Timings, Transport

if TYPE_CHECKING:  # needs TensorFlow
    from dba3c.learning.agent import Agent


T = TypeVar("T")
WARM_UP_UPDATES = 2  # the first ones compile and meet cold caches
BASE_FACTORS = (1, 2, 4)  # games of the one-rank layouts that efficiency is measured against, times n_sim


class Job(NamedTuple):
    """What every measurement shares."""

    world: World
    config: Config
    agent: Agent
    seconds: float


class Deadline:
    """False until some seconds after `start`; for ever False on ranks that do not call it."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end = seconds, float("inf")

    def start(self) -> None:
        self._end = time.monotonic() + self._seconds

    def __bool__(self) -> bool:
        return time.monotonic() >= self._end


def counts(size: int) -> list[int]:
    """1, 2, 4, … and the whole job."""
    return sorted({2**power for power in range(size.bit_length()) if 2**power <= size} | {size})


def on_ranks(world: World, options: Namespace, bar: Bar) -> dict[str, Any]:
    """All measurements, one after the other; the same result on every rank."""
    from dba3c.comm import installed

    job = make_job(world, options.preset, options.game, options.seconds, *options.overrides)
    n_sim = job.config.env.n_sim
    plan = [("alone", 1, n_sim * factor) for factor in BASE_FACTORS]
    plan += [("weak", count, n_sim) for count in counts(world.size)]
    plan += [("strong", count, max(1, n_sim * world.size // count)) for count in counts(world.size)]
    rows = [
        {"scaling": kind} | measure(job, count, games) for kind, count, games in bar.track(plan, description="scaling")
    ]
    alone = [row for row in rows if row["scaling"] == "alone"]
    base = max(alone, key=lambda row: float(row["points_per_second"]))
    for row in rows:
        row["efficiency"] = row["points_per_second"] / row["ranks"] / base["points_per_second"]
    hidden = [hidden_row(world, options, units) for units in bar.track(options.hidden, description="hidden units")]
    messages = {name: milliseconds(job, name) for name in ("mpi", "horovod") if installed(name)}
    return {
        "machine": launching.machine(),
        "base": base,
        "rows": rows,
        "hidden": hidden,
        "allreduce_milliseconds": messages,
    }


def hidden_row(world: World, options: Namespace, units: int) -> dict[str, Any]:
    """The whole job with another size of the hidden layer: a larger one makes the message longer, too."""
    overrides = (*options.overrides, f"model.hidden={units}")
    job = make_job(world, options.preset, options.game, options.seconds, *overrides)
    parameters = job.agent.layout.total
    return {"hidden": units, "parameters": parameters} | measure(job, world.size, job.config.env.n_sim)


def make_job(world: World, preset: str, game: str, seconds: float, *more: str) -> Job:
    """The preset's recipe; a rank's batch is what its games play."""
    from dba3c.training import build

    config = loading.load(preset, [f"env.game={game}", "train.batch_size=auto", *more])
    return Job(world, config, build.agent(config), seconds)


def measure(job: Job, count: int, n_sim: int) -> dict[str, Any]:
    """The pace of the first `count` ranks with `n_sim` games each, while the others sleep."""
    row = on_first(job.world, count, lambda part: pace(job, part, n_sim))
    result: dict[str, Any] = job.world.comm.bcast(row)
    return result


def on_first(world: World, count: int, work: Callable[[Any], T]) -> T | None:
    """What `work` gives on the first `count` ranks, whose communicator it gets; the others sleep and get None.

    They must not wait in MPI, which waits at full speed, but leave the cores to those who work.
    """
    playing = world.rank < count
    part = world.comm.Split(int(playing), world.rank)
    result = work(part) if playing else None
    part.Free()
    everyone = world.comm.Ibarrier()
    while not everyone.Test():
        time.sleep(0.01)
    return result


def pace(job: Job, comm: Any, n_sim: int) -> dict[str, Any]:
    """Train on `comm` until the time is over."""
    from dba3c.comm.mpi import MpiTransport
    from dba3c.training import build
    from dba3c.training.loop import train

    env = job.config.env.model_copy(update={"n_sim": n_sim})
    config = job.config.model_copy(update={"env": env})
    timings, progress, deadline = Timings(), Progress(), Deadline(job.seconds)
    rule = build.optimizer(config, job.agent)
    communicator = build.communicator(config, MpiTransport(comm), job.agent, rule, timings, progress)
    player = build.player(config, job.agent, comm.rank, job.world.threads, timings)
    player.restart(0)
    points, seconds, spent, computing = 0, 0.0, dict.fromkeys(PARTS, 0.0), list[float]()
    start = time.perf_counter()
    for update in train(player, job.agent, communicator, progress, 2**62, deadline, timings):
        if update.number == WARM_UP_UPDATES:
            start = time.perf_counter()
            deadline.start()
        elif update.number > WARM_UP_UPDATES:
            points, seconds = points + update.samples, time.perf_counter() - start
            spent = {part: value + update.sums[f"{part}_seconds"] for part, value in spent.items()}
            computing += update.by_rank["compute_seconds"].tolist()
    player.close()
    communicator.close()
    return {
        "ranks": comm.size,
        "hosts": len(set(job.world.hosts[: comm.size])),
        "games_per_rank": n_sim,
        "effective_batch": config.batch_size * comm.size,
        "points_per_second": points / seconds,
        "updates_per_second": (progress.updates - WARM_UP_UPDATES) / seconds,
        "wait_share": spent["wait"] / seconds / comm.size,
        "compute_seconds": float(np.mean(computing)),
        "compute_spread": float(np.std(computing)),
        "compute_samples": computing,
    }


def milliseconds(job: Job, name: str) -> float:
    """One all-reduce of a message of the network's size over all ranks: the median of many."""
    from dba3c.comm import make_transport

    transport: Transport = make_transport(name, job.world.comm)
    message = np.zeros(job.agent.layout.total, np.float32)
    times = []
    for _ in range(50):
        job.world.comm.Barrier()
        start = time.perf_counter()
        transport.sum(message)
        times.append(time.perf_counter() - start)
    return float(np.median(transport.gather(float(np.median(times))))) * 1e3
