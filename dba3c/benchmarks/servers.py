"""Samples/s over the number of parameter servers, as in figure 7 of the DBA3C paper, and of the all-reduce beside them.

Half of the ranks compute; the others are servers, one, two, four of them and so on. Computing is emulated: what is
measured is the way of the gradients to the servers and of the weights back. Under srun the links are real.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching, scaling
from dba3c.benchmarks.emulated_ranks import Pattern, Way
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.training_ranks import on_first
from dba3c.config.messages import ConfigError
from dba3c.job.world import World
from dba3c.types import Json

if TYPE_CHECKING:
    from mpi4py import MPI

HELP = "samples/s over the number of parameter servers, and of the all-reduce; under mpirun or srun, or alone"
RANKS = 8  # on one machine, where they take turns on its cores: computing is emulated
PARAMETERS = 332_000  # of figure 7: 1.3 MB
SAMPLES = 4  # in a gradient, as in figure 7
SECONDS_PER_GRADIENT = 0.014  # of one core: preset `paper` takes 448 ms for 128 samples


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
    for way in bar.track(ways, description="servers"):
        ranks = workers + (way.servers if way.dedicated else 0)
        rows.append(on_first(world, ranks, partial(way_row, way, workers, options.seconds)))
    alone = on_first(world, 2, partial(way_row, Way("server", dedicated=True), 1, options.seconds, computing=0.0))
    milliseconds = 1000 / alone["updates_per_second"] if alone else None
    return {"machine": launching.machine(), "rows": rows, "push_and_pull_milliseconds": milliseconds}


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


def table(result: Json) -> Table:
    milliseconds = f"{result['push_and_pull_milliseconds']:.2f} ms"
    shown = Table(
        "strategy", "workers", "servers", "updates/s", "samples/s", "per worker",
        title=f"emulated computing, real messages; {milliseconds} for a gradient and new weights without computing",
    )  # fmt: skip
    ideal = SAMPLES / SECONDS_PER_GRADIENT
    for row in result["rows"]:
        share = f"{row['samples_per_second'] / row['workers'] / ideal:.0%} of a worker alone"
        paces = f"{row['updates_per_second']:.1f}", f"{row['samples_per_second']:.0f}", share
        shown.add_row(row["strategy"], str(row["workers"]), str(row["servers"] or ""), *paces)
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw samples/s over servers; a line at the height of the all-reduce."""
    figure, axes = scaling.pyplot().subplots(figsize=(6, 4), layout="constrained")
    *served, synchronous = result["rows"]
    numbers = [row["servers"] for row in served]
    workers = synchronous["workers"]
    axes.plot(numbers, [row["samples_per_second"] for row in served], "o-", label=f"server, {workers} workers")
    axes.axhline(synchronous["samples_per_second"], color="tab:orange", label="allreduce, no servers")
    axes.axhline(workers * SAMPLES / SECONDS_PER_GRADIENT, color="grey", ls=":", label="messages that cost nothing")
    axes.set(ylabel=f"samples/s, {SAMPLES} in a gradient", ylim=(0, None))
    scaling.count_axis(axes, "servers", numbers)
    axes.legend()
    figure.savefig(file, dpi=120)
