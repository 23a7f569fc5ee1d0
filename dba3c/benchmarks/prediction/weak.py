"""Weak scaling: the efficiency of larger clusters whose ranks keep their batch, so that the effective batch grows."""

from __future__ import annotations

import json
import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching, scaling, training_ranks
from dba3c.benchmarks.emulated_ranks import STEPS, Pattern, Steps, Way
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.prediction.links import LINKS, Link, allreduce_seconds, known_links
from dba3c.benchmarks.servers import Costs, simulate_served
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.types import Array, Json

HELP = (
    "predicted efficiency on larger clusters, of the best n_backup and of asynchronous training with servers"
    + benchmarks.KEYS_TOO
)
UPDATES = 300  # simulated per forecast
PUSH_SECONDS = 2.0  # of measuring messages to a server
BACKUP_SHARES = (0.0, 0.01, 0.02, 0.04, 0.08)  # of the ranks, that are tried as n_backup
NODES = (1, 4, 16, 64, 256, 1024)


class Measured(NamedTuple):
    """What was measured on one node of this machine's kind."""

    compute_seconds: Array  # per segment, as they were measured
    samples: int  # of one rank's segment
    message_bytes: float
    inside_seconds: float  # of an all-reduce between two ranks of a node
    ticket_seconds: float  # of an empty gradient to a server of the same node and back
    push_seconds: float  # the same with the whole gradient and the new weights


class Forecast(NamedTuple):
    """One row of the result."""

    nodes: int
    network: str
    strategy: str
    seconds_per_update: float
    points_per_second: float
    efficiency: float  # against as many ranks that never wait
    effective_batch: int  # samples of one update
    staleness: float = 0.0  # in updates, which are single ranks' where servers are


def options(parser: ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--servers", type=int, default=4, help="of asynchronous training (default: 4)")


def add_cluster(parser: ArgumentParser) -> None:
    """Add what is measured here, and the clusters for which it is predicted."""
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 15.0)
    benchmarks.add_plot(parser)
    benchmarks.add_preset(parser)
    nodes, links = ",".join(map(str, NODES)), ",".join(LINKS)
    parser.add_argument("--nodes", type=benchmarks.counts, default=list(NODES), help=f"default: {nodes}")
    parser.add_argument("--network", type=known_links, default=links, help=f"default: {links}")
    parser.add_argument("--cores", type=int, default=12, help="of a node (default: 12)")
    parser.set_defaults(takes_keys=True)


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
        "ticket_seconds": measured.ticket_seconds,
        "push_seconds": measured.push_seconds,
    }
    rows = forecasts(options.nodes, options.network, options.cores, options.servers, measured)
    return {"machine": launching.machine(), "cores_per_node": options.cores, "measured": facts, "rows": rows}


def node(preset: str, game: str, seconds: float, overrides: list[str]) -> Measured:
    """Train for real with one rank on every core of this machine."""
    words = [preset, game, str(seconds), *overrides]
    found = launching.result_of(launching.cores(), "dba3c.benchmarks.prediction.weak", words)
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
        "ticket_seconds": push_and_pull_seconds(world, 1),
        "push_seconds": push_and_pull_seconds(world, job.agent.layout.total),
    }
    if world.rank == 0:
        file.write_text(json.dumps(found), encoding="utf-8")
    return EXIT_OK


def push_and_pull_seconds(world: World, parameters: int) -> float | None:
    """Measure how long a gradient takes to a server on another rank, and the new weights back; None beyond rank 1."""
    ranks = min(world.size, 2)
    way = Way("server", dedicated=ranks > 1)
    return training_ranks.on_first(
        world,
        ranks,
        lambda comm: 1 / emulated_ranks.observe(comm, Pattern(0.0), way, PUSH_SECONDS, parameters).updates_per_second,
    )


def forecasts(nodes: Sequence[int], links: Sequence[str], cores: int, servers: int, measured: Measured) -> list[Json]:
    synchronous = [forecast(count, cores, name, measured) for name in links for count in nodes]
    served = [forecast_served(count, cores, name, servers, measured) for name in links for count in nodes]
    return [row._asdict() for row in synchronous + served]


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
        strategy = f"backup {n_backup}" if n_backup else "allreduce"
        batch = (ranks - n_backup) * measured.samples
        found.append(Forecast(nodes, link, strategy, 1 / pace, samples, samples / (ranks * alone), batch))
    return max(found, key=lambda forecast: forecast.points_per_second)


def forecast_served(nodes: int, cores: int, link: str, servers: int, measured: Measured) -> Forecast:
    """Simulate workers that wait for links and servers only."""
    ranks = nodes * cores
    alone = measured.samples / float(measured.compute_seconds.mean())
    costs = served_costs(nodes, min(servers, ranks), LINKS[link], measured)
    pace, staleness = simulate_served(
        ranks, cores, lambda random, _: float(random.choice(measured.compute_seconds)), costs
    )
    samples = pace * measured.samples
    efficiency = samples / (ranks * alone)
    return Forecast(nodes, link, f"server {servers}", 1 / pace, samples, efficiency, measured.samples, staleness)


def served_costs(nodes: int, servers: int, link: Link, measured: Measured) -> Costs:
    """What a gradient costs: the clerk's ticket, its node's link, and the slowest of what the servers do.

    A server sends its slice back while others still arrive; the two directions of a link do not hinder each other.
    """
    copying = (measured.push_seconds - measured.ticket_seconds) / servers
    if nodes == 1:
        return Costs(servers=max(copying, measured.ticket_seconds), travel=measured.ticket_seconds)
    sending = measured.message_bytes / link.bandwidth
    slowest = max(copying, measured.ticket_seconds, sending / min(servers, nodes))
    return Costs(sending, slowest, travel=sending / servers + measured.ticket_seconds + 4 * link.latency)


def segments(ranks: int, compute_seconds: Array) -> Steps:
    """Return a function that draws every rank's next segment from those that were measured."""
    return lambda random: np.repeat(random.choice(compute_seconds, ranks)[:, np.newaxis] / STEPS, STEPS, axis=1)


def message_seconds(nodes: int, cores: int, link: Link, measured: Measured) -> float:
    """Compute the time of an all-reduce: inside the nodes, then between them."""
    return measured.inside_seconds * math.log2(max(cores, 1)) + allreduce_seconds(nodes, link, measured.message_bytes)


def table(result: Json) -> Table:
    measured = result["measured"]
    mean, spread = measured["compute_seconds"] * 1e3, measured["compute_spread"] * 1e3
    computing = f"{mean:.0f} ± {spread:.0f} ms per gradient on one core"
    title = f"weak scaling, preset {measured['preset']}: {computing}, {result['cores_per_node']} ranks per node"
    heads = "network", "nodes", "strategy", "efficiency", "samples/s", "ms per update", "batch", "staleness"
    shown = Table(*heads, title=title)
    for row in result["rows"]:
        paces = f"{row['points_per_second']:,.0f}", f"{row['seconds_per_update'] * 1e3:.3g}"
        staleness = f"{row['staleness']:.0f}" if row["staleness"] else ""
        words = row["network"], str(row["nodes"]), row["strategy"], f"{row['efficiency']:.0%}"
        shown.add_row(*words, *paces, f"{row['effective_batch']:,}", staleness)
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw the predicted efficiency over the number of nodes, for each network."""
    plt = scaling.pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for index, name in enumerate(dict.fromkeys(row["network"] for row in result["rows"])):
        for served, line in ((False, "o-"), (True, "s--")):
            rows = [row for row in result["rows"] if row["network"] == name and (row["staleness"] > 0) is served]
            label = f"{name}, {rows[-1]['strategy']}" if served else f"{name}, synchronous"
            points = [row["nodes"] for row in rows], [row["efficiency"] for row in rows]
            axes.plot(*points, line, color=f"C{index}", label=label)
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
