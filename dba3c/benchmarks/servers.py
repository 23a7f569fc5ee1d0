"""Samples/s over the number of parameter servers, as in figure 7 of the DBA3C paper, and of the all-reduce beside them.

Half of the ranks compute; the others are servers, one, two, four of them and so on. Computing is emulated: what is
measured is the way of the gradients to the servers and of the weights back. Under srun the links are real. Then the
strategies train for real, one rank on each core. `simulate_served` is the model of the same.
"""

from __future__ import annotations

import heapq
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching, scaling, training_ranks
from dba3c.benchmarks.emulated_ranks import Pattern, Way
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.training_ranks import make_job, on_first
from dba3c.config.messages import ConfigError
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World
from dba3c.types import Json

if TYPE_CHECKING:
    from mpi4py import MPI

HELP = "samples/s over the number of parameter servers, and of the all-reduce; under mpirun or srun, or alone"
RANKS = 8  # on one machine, where they take turns on its cores: computing is emulated
PARAMETERS = 332_000  # of figure 7: 1.3 MB
SAMPLES = 4  # in a gradient, as in figure 7
TRAINING_PRESET = "fast"
STRATEGIES = ("allreduce", "server", "hogwild")
REPEATS = 3
SECONDS_PER_GRADIENT = 0.014  # 4 samples of preset `paper` on two to three cores; one core takes 448 ms for 50


def options(parser: ArgumentParser) -> None:
    benchmarks.add_seconds(parser, 5.0)
    benchmarks.add_plot(parser)


def counts(ranks: int) -> list[int]:
    """List the numbers of servers to try beside the ranks that compute: powers of two."""
    servers = [1]
    while 4 * servers[-1] <= ranks:
        servers.append(2 * servers[-1])
    return servers


def measure(world: World, options: Namespace, bar: Bar) -> Json:
    """Measure each number of servers, then the all-reduce; the rows are complete on rank 0 alone."""
    if world.size < 2:
        raise ConfigError("bench servers: needs at least 2 ranks, one of them a server; start it on more")
    workers = world.size // 2
    ways = [Way("server", servers=count, dedicated=True) for count in counts(world.size)] + [Way()]
    rows = []
    for way in launching.track(bar, ways, "servers"):
        ranks = workers + (way.servers if way.dedicated else 0)
        rows.append(on_first(world, ranks, partial(way_row, way, workers, options.seconds)))
    alone = on_first(world, 2, partial(way_row, Way("server", dedicated=True), 1, options.seconds, computing=0.0))
    return {
        "machine": launching.machine(),
        "rows": rows,
        "push_and_pull_milliseconds": 1000 / alone["updates_per_second"] if alone else None,
        "training": training_rows(world, options.seconds) if len(set(world.hosts)) == 1 else [],
    }


def training_rows(world: World, seconds: float) -> list[Json]:
    """Train for real on one rank for each core; the rows are there on these ranks alone."""
    ranks = min(world.size, launching.cores())
    return on_first(world, ranks, partial(train_in_turn, world, seconds)) or []


def train_in_turn(world: World, seconds: float, comm: MPI.Intracomm) -> list[Json]:
    """Train under each strategy in turn; a ratio is that of turns that followed each other."""
    load_tensorflow(1)
    job = make_job(world, TRAINING_PRESET, "breakout", seconds)
    paces: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}
    for strategy in STRATEGIES * REPEATS:
        settings = job.config.comm.model_copy(update={"strategy": strategy, "servers": comm.size})
        config = job.config.model_copy(update={"comm": settings})
        row = training_ranks.row_of(job._replace(config=config), comm, config.env.n_sim)
        paces[strategy].append(row["points_per_second"])
    base = np.array(paces["allreduce"])
    return [
        {
            "strategy": strategy,
            "ranks": comm.size,
            "points_per_second": float(np.median(found)),
            "of_allreduce": float(np.median(found / base)),
        }
        for strategy, found in paces.items()
    ]


def way_row(
    way: Way, workers: int, seconds: float, comm: MPI.Intracomm, computing: float = SECONDS_PER_GRADIENT
) -> Json:
    observed = emulated_ranks.observe(comm, Pattern(computing), way, seconds, PARAMETERS)
    return {
        "strategy": way.strategy,
        "workers": workers,
        "servers": way.servers if way.dedicated else 0,
        "updates_per_second": observed.updates_per_second,
        "samples_per_second": observed.updates_per_second * way.gradients(workers) * SAMPLES,
    }


def table(result: Json) -> Group:
    tables = [served_table(result)]
    return Group(*tables, training_table(result["training"])) if result["training"] else Group(*tables)


def training_table(rows: list[Json]) -> Table:
    shown = Table("strategy", "ranks", "samples/s", "of allreduce", title=f"real training, preset {TRAINING_PRESET}")
    for row in rows:
        paces = f"{row['points_per_second']:,.0f}", f"{row['of_allreduce']:.2f}"
        shown.add_row(row["strategy"], str(row["ranks"]), *paces)
    return shown


def served_table(result: Json) -> Table:
    milliseconds = f"{result['push_and_pull_milliseconds']:.2f} ms"
    shown = Table(
        "strategy", "workers", "servers", "updates/s", "samples/s", "predicted", "per worker",
        title=f"emulated computing, real messages; {milliseconds} for a gradient and new weights without computing",
    )  # fmt: skip
    ideal = SAMPLES / SECONDS_PER_GRADIENT
    for row in result["rows"]:
        share = f"{row['samples_per_second'] / row['workers'] / ideal:.0%} of a worker alone"
        expected = f"{row['predicted']:.0f}" if "predicted" in row else ""  # where the links' speed is known
        paces = f"{row['updates_per_second']:.1f}", f"{row['samples_per_second']:.0f}", expected, share
        shown.add_row(row["strategy"], str(row["workers"]), str(row["servers"] or ""), *paces)
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw samples/s over servers; a line at the height of the all-reduce."""
    figure, axes = scaling.pyplot().subplots(figsize=(6, 4), layout="constrained")
    *served, synchronous = result["rows"]
    numbers = [row["servers"] for row in served]
    workers = synchronous["workers"]
    axes.plot(numbers, [row["samples_per_second"] for row in served], "o-", label=f"server, {workers} workers")
    if "predicted" in synchronous:
        axes.plot(numbers, [row["predicted"] for row in served], "--", color="tab:blue", label="predicted")
        axes.axhline(synchronous["predicted"], color="tab:orange", ls="--")
    axes.axhline(synchronous["samples_per_second"], color="tab:orange", label="allreduce, no servers")
    axes.set(ylabel=f"samples/s, {SAMPLES} in a gradient", ylim=(0, None))
    scaling.count_axis(axes, "servers", numbers)
    axes.legend()
    figure.savefig(file, dpi=120)


Draw = Callable[[np.random.Generator, int], float]  # → seconds of a rank's next gradient
ROUNDS = 5  # that are simulated, of all ranks
FEWEST_UPDATES = 4000


class Costs(NamedTuple):
    """Seconds that an update takes of what the workers share, and of what nobody else waits for."""

    link: float = 0.0  # of its node's link, which the node's workers share
    servers: float = 0.0  # of the servers, which all workers share: each has its part of it at the same time
    travel: float = 0.0  # from the servers back to the worker, and latencies


class Served(NamedTuple):
    updates_per_second: float
    staleness: float  # mean, in updates


def simulate_served(ranks: int, ranks_per_node: int, draw: Draw, costs: Costs) -> Served:
    """Let ranks compute, queue for their node's link and for the servers, and begin again, event by event."""
    random = np.random.default_rng(0)
    link_free = [0.0] * (ranks // ranks_per_node + 1)
    servers_free = 0.0
    version = [0] * ranks
    ends: list[float] = []
    staleness: list[int] = []
    computed, sent = range(2)
    events = [(random.random() * draw(random, rank), computed, rank) for rank in range(ranks)]
    heapq.heapify(events)
    while len(ends) < ranks + max(ROUNDS * ranks, FEWEST_UPDATES):
        now, event, rank = heapq.heappop(events)
        if event == computed:
            node = rank // ranks_per_node
            link_free[node] = max(now, link_free[node]) + costs.link
            heapq.heappush(events, (link_free[node], sent, rank))
            continue
        servers_free = max(now, servers_free) + costs.servers
        staleness.append(len(ends) - version[rank])
        ends.append(servers_free)
        version[rank] = len(ends)
        heapq.heappush(events, (servers_free + costs.travel + draw(random, rank), computed, rank))
    settled = slice(ranks, None)  # the first round of each began at a random moment
    seconds = ends[-1] - ends[ranks]
    return Served((len(ends) - 1 - ranks) / seconds, float(np.mean(staleness[settled])))
