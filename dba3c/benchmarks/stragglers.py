"""What slow and delayed ranks cost each strategy; computing is emulated, everything else is real."""

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
from dba3c.benchmarks.emulated_ranks import Pattern, Way
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.servers import Costs, simulate_served
from dba3c.benchmarks.training_ranks import on_first
from dba3c.job.exit import EXIT_OK
from dba3c.job.world import World, run_job
from dba3c.types import Json

if TYPE_CHECKING:
    from mpi4py import MPI

HELP = "pace of each strategy with slow and delayed ranks; computing is emulated"
RANKS = 8  # as many as the largest case needs
PARAMETERS = 345_143  # of the presets `a2c` and `fast`: 1.4 MB
SECONDS_PER_GRADIENT = 0.08  # of one core with 16 simulators × 5 steps
ALL = Way()
BACKUP = Way("backup", n_backup=1)
SERVER = Way("server", servers=1)


class Case(NamedTuple):
    name: str
    ranks: int
    way: Way
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
        Case("equal ranks", 4, ALL, equal, seconds),
        Case("equal ranks", 4, SERVER, equal, seconds),
        Case("one rank 3 × slower", 4, ALL, slow, seconds),
        Case("one rank 3 × slower", 4, BACKUP, slow, seconds),
        Case("one rank 3 × slower", 4, SERVER, slow, seconds),
        Case("one rank pauses for 5 s", 4, ALL, pause, 10.0),
        Case("one rank pauses for 5 s", 4, BACKUP, pause, 10.0),
        Case("one rank pauses for 5 s", 4, SERVER, pause, 10.0),
        Case("10 % of steps 5 × slower", 8, ALL, delays, seconds),
        Case("10 % of steps 5 × slower", 8, BACKUP, delays, seconds),
        Case("10 % of steps 5 × slower", 8, BACKUP._replace(n_backup=2), delays, seconds),
        Case("10 % of steps 5 × slower", 8, SERVER, delays, seconds),
    ]


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure all cases on ranks that share this machine's cores, as computing is emulated."""
    bar.add_task("stragglers", total=None)
    words = [str(options.seconds)]
    found = launching.result_of(RANKS, "dba3c.benchmarks.stragglers", words, oversubscribe=True)
    return {"machine": launching.machine()} | compared(found["rows"])


def compared(rows: list[Json]) -> Json:
    """Put each pace next to that of equal ranks under the same strategy, and to what a simulation says.

    Backup workers are compared with the all-reduce. Only servers make more updates of more ranks: one of each gradient.
    """
    equal = {served: next(row for row in rows if is_served(row) is served) for served in (False, True)}
    for case, row in zip(cases(0.0), rows, strict=True):
        pace = rounds_per_second(equal[is_served(row)])
        row["of_equal_ranks"] = rounds_per_second(row) / pace
        row["predicted"] = predicted(case, 1 / pace - SECONDS_PER_GRADIENT)
    kept = next(row for row in rows if row["strategy"] == BACKUP.name)
    return {"rows": rows, "pace_kept": kept["of_equal_ranks"]}


def is_served(row: Json) -> bool:
    return bool(row["strategy"] == SERVER.name)


def rounds_per_second(row: Json) -> float:
    """Return how often each rank can have contributed to an update in a second."""
    return float(row["updates_per_second"] / (row["ranks"] if is_served(row) else 1))


def predicted(case: Case, message_seconds: float) -> float | None:
    """Simulate a case; None if a rank pauses, which the simulation cannot do."""
    if case.pattern.pause:
        return None
    if case.way == SERVER:
        costs = Costs(travel=message_seconds)
        return simulate_served(case.ranks, 1, case.pattern.draw, costs).updates_per_second
    steps = case.pattern.segments(case.ranks)
    return emulated_ranks.simulate(case.ranks, case.way.n_backup, steps, message_seconds)


def table(result: Json) -> Table:
    names = "case", "ranks", "strategy", "updates/s", "predicted", "of equal ranks", "longest update"
    shown = Table(*names, title="emulated computing, real messages")
    for row in result["rows"]:
        expected = f"{row['predicted']:.2f}" if row["predicted"] else ""
        paces = [f"{row['updates_per_second']:.2f}", expected, f"{row['of_equal_ranks']:.0%}"]
        shown.add_row(row["case"], str(row["ranks"]), row["strategy"], *paces, f"{row['longest_update']:.2f} s")
    return shown


def on_rank(world: World, seconds: float, file: Path) -> int:
    """Go through all cases; ranks that a case does not need sleep."""
    rows = [on_first(world, case.ranks, partial(case_row, case)) for case in cases(seconds)]
    if world.rank == 0:
        file.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    return EXIT_OK


def case_row(case: Case, comm: MPI.Intracomm) -> Json:
    observed = emulated_ranks.observe(comm, case.pattern, case.way, case.seconds, PARAMETERS)
    return {
        "case": case.name,
        "ranks": case.ranks,
        "strategy": case.way.name,
        "updates_per_second": observed.updates_per_second,
        "longest_update": observed.longest_update,
        "late_share_by_rank": observed.late_share,
    }


if __name__ == "__main__":
    SECONDS, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, float(SECONDS), Path(FILE))))
