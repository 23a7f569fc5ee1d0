"""Efficiency on more nodes than are at hand: computing is measured, messages are modelled, waiting is simulated."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dba3c.benchmarks import emulated_ranks, launching, scaling
from dba3c.benchmarks.emulated_ranks import STEPS, Steps
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.types import Array

UPDATES = 300  # simulated per point
BACKUP_SHARES = (0.0, 0.01, 0.02, 0.04, 0.08)  # of the ranks, that are tried as n_backup


class Network(NamedTuple):
    """What a message meets between two nodes."""

    latency: float  # seconds, software included
    bandwidth: float  # bytes per second that a program sees


NETWORKS = {  # 94 % of the line is left after Ethernet, IP and TCP headers; latencies of TCP, and of RDMA for 100g
    "1g": Network(50e-6, 0.94 * 1e9 / 8),
    "10g": Network(30e-6, 0.94 * 10e9 / 8),
    "100g": Network(5e-6, 0.94 * 100e9 / 8),
}


class Measured(NamedTuple):
    """What one node of the kind at hand does."""

    computing: Array  # seconds per segment, as they were measured
    points: int  # data points of one rank's segment
    message: float  # bytes
    inside: float  # seconds of an all-reduce between two ranks of a node


class Prediction(NamedTuple):
    nodes: int
    network: str
    n_backup: int
    seconds_per_update: float
    points_per_second: float
    efficiency: float  # against as many ranks that never wait


def allreduce_seconds(nodes: int, network: Network, size: float) -> float:
    """Reduce-scatter and all-gather by halving and doubling (Rabenseifner), what MPI libraries use at this size."""
    if nodes == 1:
        return 0.0
    rounds = 2 * math.ceil(math.log2(nodes))
    return rounds * network.latency + 2 * (nodes - 1) / nodes * size / network.bandwidth


def message_seconds(nodes: int, cores: int, network: Network, measured: Measured) -> float:
    """Inside the nodes, then between them."""
    return measured.inside * math.log2(max(cores, 1)) + allreduce_seconds(nodes, network, measured.message)


def segments(count: int, computing: Array) -> Steps:
    """Every rank's next segment, drawn from those that were measured."""
    return lambda random: np.repeat(random.choice(computing, count)[:, np.newaxis] / STEPS, STEPS, axis=1)


def predict(nodes: int, cores: int, name: str, measured: Measured) -> Prediction:
    """The best n_backup, and what it gives: data points that count, per second."""
    count, message = nodes * cores, message_seconds(nodes, cores, NETWORKS[name], measured)
    alone = measured.points / float(measured.computing.mean())
    found = []
    for n_backup in sorted({round(share * count) for share in BACKUP_SHARES}):
        pace = emulated_ranks.simulate(count, n_backup, segments(count, measured.computing), message, UPDATES)
        points = pace * (count - n_backup) * measured.points
        found.append(Prediction(nodes, name, n_backup, 1 / pace, points, points / (count * alone)))
    return max(found, key=lambda prediction: prediction.points_per_second)


def all_rows(nodes: list[int], networks: list[str], cores: int, measured: Measured) -> list[dict[str, Any]]:
    return [predict(count, cores, name, measured)._asdict() for name in networks for count in nodes]


def measure(preset: str, game: str, seconds: float, overrides: list[str]) -> Measured:
    """One rank on every core of this machine, training for real."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.json"
        launching.run(
            launching.cores(), "dba3c.benchmarks.prediction", [preset, game, str(seconds), str(file), *overrides]
        )
        found = json.loads(file.read_text(encoding="utf-8"))
    return Measured(np.array(found["computing"]), found["points"], found["message"], found["inside"])


def on_rank(world: World, preset: str, game: str, seconds: float, file: Path, overrides: list[str]) -> int:
    load_tensorflow(world.threads)
    job = scaling.make_job(world, preset, game, seconds, *overrides)
    row = scaling.measure(job, world.size, job.config.env.n_sim)
    inside = scaling.milliseconds(job, "mpi") / 1e3
    found = {"computing": row["compute_samples"], "points": row["effective_batch"] // world.size}
    found |= {"message": 4 * job.agent.layout.total, "inside": inside}
    if world.rank == 0:
        file.write_text(json.dumps(found), encoding="utf-8")
    return EXIT_OK


if __name__ == "__main__":
    PRESET, GAME, SECONDS, FILE, *OVERRIDES = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, PRESET, GAME, float(SECONDS), Path(FILE), OVERRIDES)))
