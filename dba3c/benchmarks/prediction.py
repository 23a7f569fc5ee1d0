"""Predict efficiency on larger clusters: computing is measured, messages are modelled, waiting is simulated."""

from __future__ import annotations

import json
import math
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching, scaling, training_ranks
from dba3c.benchmarks.emulated_ranks import STEPS, Steps
from dba3c.benchmarks.launching import Bar
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.types import Array, Json

HELP = "predicted time per update and efficiency on larger clusters, and the best n_backup" + benchmarks.KEYS_TOO
UPDATES = 300  # simulated per forecast
BACKUP_SHARES = (0.0, 0.01, 0.02, 0.04, 0.08)  # of the ranks, that are tried as n_backup
NODES = (1, 4, 16, 64, 256, 1024)


class Link(NamedTuple):
    """What a message meets between two nodes."""

    latency: float  # seconds, software included
    bandwidth: float  # bytes per second that a program sees


LINKS = {  # 94 % of the line is left after Ethernet, IP and TCP headers; latencies of TCP, and of RDMA for 100g
    "1g": Link(50e-6, 0.94 * 1e9 / 8),
    "10g": Link(30e-6, 0.94 * 10e9 / 8),
    "100g": Link(5e-6, 0.94 * 100e9 / 8),
}


class Measured(NamedTuple):
    """What was measured on one node of this machine's kind."""

    compute_seconds: Array  # per segment, as they were measured
    samples: int  # of one rank's segment
    message_bytes: float
    inside_seconds: float  # of an all-reduce between two ranks of a node


class Forecast(NamedTuple):
    """One row of the result."""

    nodes: int
    network: str
    n_backup: int
    seconds_per_update: float
    points_per_second: float
    efficiency: float  # against as many ranks that never wait


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 15.0)
    benchmarks.add_plot(parser)
    benchmarks.add_preset(parser)
    nodes, links = ",".join(map(str, NODES)), ",".join(LINKS)
    parser.add_argument("--nodes", type=benchmarks.counts, default=list(NODES), help=f"default: {nodes}")
    parser.add_argument("--network", type=known_links, default=links, help=f"default: {links}")
    parser.add_argument("--cores", type=int, default=12, help="of a node, with a rank on each (default: 12)")
    parser.set_defaults(takes_keys=True)


def known_links(text: str) -> list[str]:
    """Read names of links, with commas between them."""
    names = text.split(",")
    if unknown := [name for name in names if name not in LINKS]:
        raise ArgumentTypeError(f"{unknown[0]}: not one of {', '.join(LINKS)}")
    return names


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure this machine, then simulate nodes of its kind."""
    bar.add_task("measuring this machine, then simulating", total=None)
    measured = node(options.preset, options.game, options.seconds, options.overrides)
    facts = {
        "preset": options.preset,
        "compute_seconds": float(measured.compute_seconds.mean()),
        "compute_spread": float(measured.compute_seconds.std()),
        "message_bytes": measured.message_bytes,
        "inside_seconds": measured.inside_seconds,
    }
    rows = forecasts(options.nodes, options.network, options.cores, measured)
    return {"machine": launching.machine(), "cores_per_node": options.cores, "measured": facts, "rows": rows}


def node(preset: str, game: str, seconds: float, overrides: list[str]) -> Measured:
    """Train for real with one rank on every core of this machine."""
    words = [preset, game, str(seconds), *overrides]
    found = launching.result_of(launching.cores(), "dba3c.benchmarks.prediction", words)
    return Measured(**found | {"compute_seconds": np.array(found["compute_seconds"])})


def on_rank(world: World, preset: str, game: str, seconds: float, overrides: list[str], file: Path) -> int:
    """Measure one node; rank 0 writes what the forecasts need."""
    load_tensorflow(world.threads)
    job = training_ranks.make_job(world, preset, game, seconds, *overrides)
    row = training_ranks.row(job, world.size, job.config.env.n_sim)
    found = {
        "compute_seconds": row["compute_samples"],
        "samples": row["effective_batch"] // world.size,
        "message_bytes": 4 * job.agent.layout.total,
        "inside_seconds": training_ranks.allreduce_milliseconds(job, "mpi") / 1e3,
    }
    if world.rank == 0:
        file.write_text(json.dumps(found), encoding="utf-8")
    return EXIT_OK


def forecasts(nodes: Sequence[int], links: Sequence[str], cores: int, measured: Measured) -> list[Json]:
    return [forecast(count, cores, name, measured)._asdict() for name in links for count in nodes]


def forecast(nodes: int, cores: int, link: str, measured: Measured) -> Forecast:
    """Find the n_backup that lets most samples per second count, and what it gives."""
    ranks = nodes * cores
    alone = measured.samples / float(measured.compute_seconds.mean())
    steps = segments(ranks, measured.compute_seconds)
    message = message_seconds(nodes, cores, LINKS[link], measured)
    found = []
    for n_backup in sorted({round(share * ranks) for share in BACKUP_SHARES}):
        pace = emulated_ranks.simulate(ranks, n_backup, steps, message, UPDATES)
        samples = pace * (ranks - n_backup) * measured.samples
        found.append(Forecast(nodes, link, n_backup, 1 / pace, samples, samples / (ranks * alone)))
    return max(found, key=lambda forecast: forecast.points_per_second)


def segments(ranks: int, compute_seconds: Array) -> Steps:
    """Return a function that draws every rank's next segment from those that were measured."""
    return lambda random: np.repeat(random.choice(compute_seconds, ranks)[:, np.newaxis] / STEPS, STEPS, axis=1)


def message_seconds(nodes: int, cores: int, link: Link, measured: Measured) -> float:
    """Compute the time of an all-reduce: inside the nodes, then between them."""
    return measured.inside_seconds * math.log2(max(cores, 1)) + allreduce_seconds(nodes, link, measured.message_bytes)


def allreduce_seconds(nodes: int, link: Link, size: float) -> float:
    """Time reduce-scatter and all-gather by halving and doubling (Rabenseifner), as MPI libraries do at this size."""
    if nodes == 1:
        return 0.0
    rounds = 2 * math.ceil(math.log2(nodes))
    return rounds * link.latency + 2 * (nodes - 1) / nodes * size / link.bandwidth


def table(result: Json) -> Table:
    measured = result["measured"]
    mean, spread = measured["compute_seconds"] * 1e3, measured["compute_spread"] * 1e3
    computing = f"{mean:.0f} ± {spread:.0f} ms per gradient on one core"
    title = f"preset {measured['preset']}: {computing}, {result['cores_per_node']} ranks per node"
    shown = Table("network", "nodes", "efficiency", "samples/s", "ms per update", "n_backup", title=title)
    for row in result["rows"]:
        paces = f"{row['points_per_second']:,.0f}", f"{row['seconds_per_update'] * 1e3:.0f}"
        shown.add_row(row["network"], str(row["nodes"]), f"{row['efficiency']:.0%}", *paces, str(row["n_backup"]))
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw the predicted efficiency over the number of nodes, for each network."""
    plt = scaling.pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name in dict.fromkeys(row["network"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["network"] == name]
        axes.plot([row["nodes"] for row in rows], [row["efficiency"] for row in rows], marker="o", label=name)
    axes.plot([64], [0.63], "kx", label="the paper, 64 nodes")
    nodes = sorted({row["nodes"] for row in result["rows"]})
    scaling.count_axis(axes, f"nodes of {result['cores_per_node']} cores", nodes)
    scaling.percent_axis(axes, "efficiency", 1.05)
    axes.legend()
    axes.set_title(f"preset {result['measured']['preset']}, predicted from one node ({result['machine']['cpu']})")
    figure.savefig(file, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    PRESET, GAME, SECONDS, *OVERRIDES, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, PRESET, GAME, float(SECONDS), OVERRIDES, Path(FILE))))
