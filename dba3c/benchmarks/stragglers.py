"""What slow and delayed ranks cost, with and without backup workers; computing is emulated, everything else is real."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import emulated_ranks, launching
from dba3c.benchmarks.emulated_ranks import Pattern
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.training_ranks import on_first
from dba3c.job.exit import EXIT_OK
from dba3c.job.world import World, run_job
from dba3c.types import Json

if TYPE_CHECKING:
    from mpi4py import MPI

HELP = "updates/s with slow and delayed ranks, with and without backup workers; computing is emulated"
RANKS = 8  # as many as the largest case needs
PARAMETERS = 345_143  # of the presets `paac` and `fast`: 1.4 MB
SECONDS_PER_GRADIENT = 0.08  # of one core with 16 simulators × 5 steps


class Case(NamedTuple):
    name: str
    ranks: int
    n_backup: int
    pattern: Pattern
    seconds: float


def options(parser: ArgumentParser) -> None:
    benchmarks.add_seconds(parser, 5.0)


def cases(seconds: float) -> list[Case]:
    equal = Pattern(SECONDS_PER_GRADIENT)
    slow = equal._replace(slow_rank=3, factor=3.0)
    delays = equal._replace(delayed=0.1, delay=5.0)
    pause = equal._replace(slow_rank=3, pause=5.0)
    return [
        Case("equal ranks", 4, 0, equal, seconds),
        Case("one rank 3 × slower", 4, 0, slow, seconds),
        Case("one rank 3 × slower", 4, 1, slow, seconds),
        Case("one rank pauses for 5 s", 4, 0, pause, 10.0),
        Case("one rank pauses for 5 s", 4, 1, pause, 10.0),
        Case("10 % of steps 5 × slower", 8, 0, delays, seconds),
        Case("10 % of steps 5 × slower", 8, 1, delays, seconds),
        Case("10 % of steps 5 × slower", 8, 2, delays, seconds),
    ]


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure all cases on ranks that share this machine's cores, as computing is emulated."""
    bar.add_task("stragglers", total=None)
    words = [str(options.seconds)]
    found = launching.result_of(RANKS, "dba3c.benchmarks.stragglers", words, oversubscribe=True)
    return {"machine": launching.machine()} | compared(found["rows"])


def compared(rows: list[Json]) -> Json:
    """Put each pace next to that of equal ranks and to what a simulation of the same ranks says."""
    equal = rows[0]["updates_per_second"]
    message_seconds = 1 / equal - SECONDS_PER_GRADIENT
    for case, row in zip(cases(0.0), rows, strict=True):
        row["of_equal_ranks"] = row["updates_per_second"] / equal
        row["predicted"] = predicted(case, message_seconds)
    kept = next(row for row in rows if row["n_backup"] == 1)
    return {"rows": rows, "pace_kept": kept["of_equal_ranks"]}


def predicted(case: Case, message_seconds: float) -> float | None:
    """Simulate a case; None if a rank pauses, which the simulation cannot do."""
    if case.pattern.pause:
        return None
    return emulated_ranks.simulate(case.ranks, case.n_backup, case.pattern.segments(case.ranks), message_seconds)


def table(result: Json) -> Table:
    names = "case", "ranks", "n_backup", "updates/s", "predicted", "of equal ranks", "longest update"
    shown = Table(*names, title="emulated computing, real messages")
    for row in result["rows"]:
        expected = f"{row['predicted']:.2f}" if row["predicted"] else ""
        paces = [f"{row['updates_per_second']:.2f}", expected, f"{row['of_equal_ranks']:.0%}"]
        shown.add_row(row["case"], str(row["ranks"]), str(row["n_backup"]), *paces, f"{row['longest_update']:.2f} s")
    return shown


def on_rank(world: World, seconds: float, file: Path) -> int:
    """Go through all cases; ranks that a case does not need sleep."""
    rows = [on_first(world, case.ranks, partial(case_row, case)) for case in cases(seconds)]
    if world.rank == 0:
        file.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    return EXIT_OK


def case_row(case: Case, comm: MPI.Intracomm) -> Json:
    observed = emulated_ranks.observe(comm, case.pattern, case.n_backup, case.seconds, PARAMETERS)
    return {
        "case": case.name,
        "ranks": case.ranks,
        "n_backup": case.n_backup,
        "updates_per_second": observed.updates_per_second,
        "longest_update": observed.longest_update,
        "late_share_by_rank": observed.late_share,
    }


if __name__ == "__main__":
    SECONDS, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, float(SECONDS), Path(FILE))))
