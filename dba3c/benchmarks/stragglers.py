"""What slow and delayed ranks cost, with and without backup workers; computing is emulated, everything else is real."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dba3c.benchmarks import emulated_ranks
from dba3c.benchmarks.emulated_ranks import Pattern
from dba3c.benchmarks.scaling import on_first
from dba3c.job.exit import EXIT_OK
from dba3c.job.world import World, run_job

PARAMETERS = 345_143  # of the presets `paac` and `fast`: 1.4 MB
SECONDS_PER_GRADIENT = 0.08  # of one core with 16 games × 5 steps


class Case(NamedTuple):
    name: str
    ranks: int
    n_backup: int
    pattern: Pattern
    seconds: float


def cases(seconds: float) -> list[Case]:
    honest = Pattern(SECONDS_PER_GRADIENT)
    slow = honest._replace(slow_rank=3, factor=3.0)
    delays = honest._replace(delayed=0.1, delay=5.0)
    pause = honest._replace(slow_rank=3, pause=5.0)
    return [
        Case("equal ranks", 4, 0, honest, seconds),
        Case("one rank 3 × slower", 4, 0, slow, seconds),
        Case("one rank 3 × slower", 4, 1, slow, seconds),
        Case("one rank pauses for 5 s", 4, 0, pause, 10.0),
        Case("one rank pauses for 5 s", 4, 1, pause, 10.0),
        Case("10 % of steps 5 × slower", 8, 0, delays, seconds),
        Case("10 % of steps 5 × slower", 8, 1, delays, seconds),
        Case("10 % of steps 5 × slower", 8, 2, delays, seconds),
    ]


def on_rank(world: World, seconds: float, file: Path) -> int:
    """All cases in turn; ranks that a case does not need wait."""
    rows = [on_first(world, case.ranks, partial(measure, case)) for case in cases(seconds)]
    if world.rank == 0:
        file.write_text(json.dumps(rows), encoding="utf-8")
    return EXIT_OK


def measure(case: Case, comm: Any) -> dict[str, Any]:
    pace = emulated_ranks.measure(comm, case.pattern, case.n_backup, case.seconds, PARAMETERS)
    return {
        "case": case.name,
        "ranks": case.ranks,
        "n_backup": case.n_backup,
        "updates_per_second": pace.updates_per_second,
        "longest_update": pace.longest_update,
        "late_share_by_rank": pace.late_share,
    }


def predicted(case: Case, message: float) -> float | None:
    """The simulation knows nothing of pauses."""
    if case.pattern.pause:
        return None
    return emulated_ranks.simulate(case.ranks, case.n_backup, case.pattern.segments(case.ranks), message)


def result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Each pace next to that of equal ranks and to what a simulation of the same ranks says."""
    equal = rows[0]["updates_per_second"]
    message = 1 / equal - SECONDS_PER_GRADIENT
    for case, measured in zip(cases(0.0), rows, strict=True):
        measured["of_equal_ranks"] = measured["updates_per_second"] / equal
        measured["predicted"] = predicted(case, message)
    kept = next(row for row in rows if row["n_backup"] == 1)
    return {"rows": rows, "pace_kept": kept["of_equal_ranks"]}


if __name__ == "__main__":
    SECONDS, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, float(SECONDS), Path(FILE))))
