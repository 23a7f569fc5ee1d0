"""Predicted against measured updates/s, over links of 1 Gbit/s between up to 16 hosts. As root:

DBA3C_CLUSTER_NODES=16 python -m tests.cluster.validate docs/validation     (make validate)

Computing is emulated (a sleep drawn from a wide distribution), so that two cores can play 16 hosts; messages are real.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dba3c.benchmarks import emulated_ranks, scaling
from dba3c.benchmarks.emulated_ranks import Pattern, Way
from dba3c.benchmarks.prediction import links
from dba3c.benchmarks.stragglers import PARAMETERS
from dba3c.benchmarks.training_ranks import on_first
from dba3c.job.exit import EXIT_OK
from dba3c.job.world import World, run_job
from tests.cluster import slurm

COUNTS = (2, 4, 8, 16)
PATTERN = Pattern(seconds=0.25, delayed=0.1, delay=5.0)
SECONDS = 12.0


def on_rank(world: World, file: Path) -> int:
    """Measure on the first 2, 4, … ranks; rank 0 writes the rows."""
    rows = [on_first(world, count, partial(measure, n_backup)) for count in COUNTS for n_backup in (0, 1)]
    if world.rank == 0:
        file.write_text(json.dumps(rows), encoding="utf-8")
    return EXIT_OK


def measure(n_backup: int, comm: Any) -> dict[str, Any]:
    way = Way("backup", n_backup) if n_backup else Way()
    observed = emulated_ranks.observe(comm, PATTERN, way, SECONDS, PARAMETERS)
    return {"hosts": comm.size, "n_backup": n_backup, "measured": observed.updates_per_second}


def predicted(row: dict[str, Any]) -> float:
    message = links.allreduce_seconds(row["hosts"], links.LINKS["1g"], 4 * PARAMETERS)
    return emulated_ranks.simulate(row["hosts"], row["n_backup"], PATTERN.segments(row["hosts"]), message)


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    figure, axes = scaling.pyplot().subplots(figsize=(6, 4), layout="constrained")
    for n_backup, color in ((0, "tab:blue"), (1, "tab:orange")):
        chosen = [row for row in rows if row["n_backup"] == n_backup]
        hosts = [row["hosts"] for row in chosen]
        axes.plot(
            hosts, [row["predicted"] for row in chosen], "--", color=color, label=f"predicted, n_backup {n_backup}"
        )
        axes.plot(hosts, [row["measured"] for row in chosen], "o", color=color, label=f"measured, n_backup {n_backup}")
    axes.set(ylabel="updates/s", ylim=(0, None))
    scaling.count_axis(axes, "hosts, 1 Gbit/s between them", COUNTS)
    axes.legend()
    figure.savefig(file, dpi=120)


def main(out: Path) -> int:
    slurm.up()
    try:
        slurm.shape("1gbit")
        most, file = str(max(COUNTS)), slurm.FOLDER / "rows.json"
        words = (
            "srun",
            "--mpi=pmix",
            "-N",
            most,
            "-n",
            most,
            sys.executable,
            "-m",
            "tests.cluster.validate",
            "rank",
            str(file),
        )
        result = slurm.command(*words, seconds=600)
        assert result.returncode == 0, result.stderr
        rows = json.loads(file.read_text(encoding="utf-8"))
    finally:
        slurm.down()
    for row in rows:
        row["predicted"] = predicted(row)
        print(
            "{hosts:3} hosts, n_backup {n_backup}: measured {measured:.2f}, predicted {predicted:.2f} updates/s".format(
                **row
            )
        )
    print(f"largest error {max(abs(np.log(row['predicted'] / row['measured'])) for row in rows):.0%}")
    out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    plot(rows, out.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        sys.exit(run_job(lambda world: on_rank(world, Path(sys.argv[2]))))
    sys.exit(main(Path(sys.argv[1])))
