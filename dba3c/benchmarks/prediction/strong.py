"""Strong scaling: the pace of larger clusters at a fixed effective batch, and the best division of it among cores."""

from __future__ import annotations

import itertools
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching, scaling
from dba3c.benchmarks.emulated_ranks import STEPS, Steps
from dba3c.benchmarks.launching import Bar, stage
from dba3c.benchmarks.prediction import weak
from dba3c.benchmarks.prediction.links import LINKS, allreduce_seconds
from dba3c.types import Array, Json

HELP = "predicted pace at a fixed effective batch, and the best layout for it" + benchmarks.KEYS_TOO
UPDATES = 300  # simulated per layout
SIMULATORS_PER_CORE = (1, 2, 4, 8, 16, 32)  # that are measured
TOLERANCE = 0.1  # by which a layout may miss the effective batch
BACKUP_SHARES = (0.0, 0.02, 0.06)  # of the ranks, that are tried as n_backup


def options(parser: ArgumentParser) -> None:
    weak.add_cluster(parser)
    parser.add_argument("--batch", type=benchmarks.counts, default=[512, 2048], help="default: 512,2048")


class Core(NamedTuple):
    """What was measured of one core that plays some simulators."""

    simulators: int
    samples: int  # of one update
    compute_seconds: Array  # of single updates


class Layout(NamedTuple):
    """How an effective batch is divided; the ranks of a node have a shard for each core."""

    nodes: int
    ranks_per_node: int
    cores_per_rank: int
    core: Core

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def batch(self) -> int:
        return self.ranks * self.cores_per_rank * self.core.samples

    def __str__(self) -> str:
        return f"{self.ranks_per_node} × {self.cores_per_rank} cores × {self.core.simulators} simulators"


class Exchange(NamedTuple):
    """Seconds that gradients take on their way."""

    between_nodes: float  # an all-reduce
    between_ranks: float  # an all-reduce between two ranks of a node
    between_shards: float  # adding one shard's gradient to another's

    def seconds(self, layout: Layout) -> float:
        inside = self.between_ranks * np.log2(layout.ranks_per_node)
        return float(self.between_nodes + inside + self.between_shards * (layout.cores_per_rank - 1))


class Pace(NamedTuple):
    """What a layout gives."""

    layout: Layout
    n_backup: int
    updates_per_second: float

    @property
    def samples_per_second(self) -> float:
        share = 1 - self.n_backup / self.layout.ranks
        return self.updates_per_second * self.layout.batch * share


def layouts(batch: int, nodes: int, cores: int, measured: Sequence[Core]) -> Iterator[Layout]:
    """List the divisions of an effective batch among at most so many cores of each node."""
    for core in measured:
        used = round(batch / (core.samples * nodes))  # cores of a node
        if not 1 <= used <= cores or abs(used * nodes * core.samples / batch - 1) > TOLERANCE:
            continue
        for ranks in (count for count in range(1, used + 1) if used % count == 0):
            yield Layout(nodes, ranks, used // ranks, core)


def segments(layout: Layout) -> Steps:
    """Return a function that draws every rank's next segment: it takes as long as that of its slowest shard."""

    def draw(random: np.random.Generator) -> Array:
        shards = random.choice(layout.core.compute_seconds, (layout.ranks, layout.cores_per_rank))
        return np.repeat(shards.max(axis=1)[:, np.newaxis] / STEPS, STEPS, axis=1)

    return draw


def paces(layout: Layout, exchange: Exchange) -> Iterator[Pace]:
    """Simulate a layout with no backup workers and with some."""
    for n_backup in sorted({round(share * layout.ranks) for share in BACKUP_SHARES}):
        updates = emulated_ranks.simulate(layout.ranks, n_backup, segments(layout), exchange.seconds(layout), UPDATES)
        yield Pace(layout, n_backup, updates)


def best(batch: int, nodes: int, cores: int, measured: Sequence[Core], exchange: Exchange) -> Pace | None:
    """Find the layout that makes most samples per second count; None if no layout has this effective batch."""
    found = [pace for layout in layouts(batch, nodes, cores, measured) for pace in paces(layout, exchange)]
    return max(found, key=lambda pace: pace.samples_per_second, default=None)


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure cores with few and many simulators, then find the best layout of each batch, network and cluster."""
    bar.add_task("", total=len(SIMULATORS_PER_CORE))
    cores = []
    for count in SIMULATORS_PER_CORE:
        with stage(bar, f"measuring this machine with {count} simulators per core"):
            keys = [*options.overrides, f"env.n_sim={count}"]
            node = weak.node(options.preset, options.game, options.seconds, keys)
            cores.append(Core(count, node.samples, node.compute_seconds))
    shards = adding_seconds(int(node.message_bytes / 4))
    rows = []
    for batch, network, nodes in itertools.product(options.batch, options.network, options.nodes):
        between = allreduce_seconds(nodes, LINKS[network], node.message_bytes)
        pace = best(batch, nodes, options.cores, cores, Exchange(between, node.inside_seconds, shards))
        rows.append({"batch": batch, "network": network, "nodes": nodes} | facts(pace))
    measured = {
        "preset": options.preset,
        "compute_seconds": {str(core.simulators): float(core.compute_seconds.mean()) for core in cores},
        "inside_seconds": node.inside_seconds,
        "adding_seconds": shards,
    }
    return {"machine": launching.machine(), "cores_per_node": options.cores, "measured": measured, "rows": rows}


def facts(pace: Pace | None) -> Json:
    if pace is None:
        return {"layout": None}
    return {
        "layout": str(pace.layout),
        "effective_batch": pace.layout.batch,
        "updates_per_second": pace.updates_per_second,
        "samples_per_second": pace.samples_per_second,
        "n_backup": pace.n_backup,
    }


def adding_seconds(parameters: int, repeats: int = 50) -> float:
    """Time the addition of one gradient to another."""
    total, part = np.zeros(parameters, np.float32), np.ones(parameters, np.float32)
    start = time.perf_counter()
    for _ in range(repeats):
        total = total + part * np.float32(0.5)
    return (time.perf_counter() - start) / repeats


def table(result: Json) -> Table:
    """Show the best layout for each batch, network and number of nodes."""
    title = f"strong scaling, preset {result['measured']['preset']}, nodes of {result['cores_per_node']} cores"
    heads = "batch", "network", "nodes", "ranks per node × cores × simulators", "updates/s", "samples/s", "n_backup"
    shown = Table(*heads, title=title)
    for row in result["rows"]:
        where = f"{row['batch']:,}", row["network"], str(row["nodes"])
        if row["layout"] is None:
            shown.add_row(*where, "none: too few or too many samples per core")
            continue
        paces = f"{row['updates_per_second']:.1f}", f"{row['samples_per_second']:,.0f}", str(row["n_backup"])
        shown.add_row(*where, row["layout"], *paces)
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw the predicted samples/s over the number of nodes, for each batch, on the first network."""
    plt = scaling.pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    network = result["rows"][0]["network"]
    rows = [row for row in result["rows"] if row["network"] == network and row["layout"]]
    for batch in dict.fromkeys(row["batch"] for row in rows):
        points = [(row["nodes"], row["samples_per_second"]) for row in rows if row["batch"] == batch]
        axes.plot(*zip(*points, strict=True), "o-", label=f"effective batch {batch:,}")
    scaling.count_axis(axes, f"nodes of {result['cores_per_node']} cores", sorted({row["nodes"] for row in rows}))
    axes.set_yscale("log")
    axes.set_ylabel("samples/s")
    axes.legend()
    axes.set_title(f"preset {result['measured']['preset']}, {network}, predicted from {result['machine']['cpu']}")
    figure.savefig(file, dpi=120)
    plt.close(figure)
