"""End-to-end steps/s of the real trainer for several layouts, as fractions of what the parts alone would allow."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching, parts
from dba3c.benchmarks.launching import Bar, stage
from dba3c.benchmarks.layouts import Allocation, trial
from dba3c.config.messages import ConfigError
from dba3c.types import Json

HELP = "steps/s of the real trainer, as a fraction of what its parts allow"
PARTS_SECONDS = 1.0  # of measuring each part alone: with the rest, an answer within four minutes on two cores


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 6.0)
    benchmarks.add_repeats(parser, 2)
    benchmarks.add_preset(parser)
    help_text = "another checkout of dba3c, measured in turn with this one: did a change cost speed?"
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help=help_text)


def allocations(cores: int) -> list[Allocation]:
    """List one rank on one core, then one rank per core, then one rank on all cores."""
    return [
        Allocation(1, 1, "lockstep", 32, 20),
        Allocation(cores, 1, "lockstep", 32, 20),
        Allocation(cores, 1, "lockstep", 8),  # as preset fast divides its simulators on two cores
        Allocation(cores, 1, "async", 16),
        Allocation(1, cores, "lockstep", 32 * cores, 20),
    ]


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure allocations in turn, each round after its parts alone, so that a noisy minute hits them all."""
    if options.against and not (options.against / "dba3c" / "train.py").is_file():
        raise ConfigError(f"--against={options.against}: is no checkout of dba3c")
    checkouts = [None, options.against.resolve()] if options.against else [None]
    tried = allocations(launching.cores())
    parts_of: dict[tuple[str, ...], list[Json]] = {allocation.sizes: [] for allocation in tried}
    summaries_of: dict[tuple[Allocation, Path | None], list[Json]] = {
        (allocation, checkout): [] for allocation in tried for checkout in checkouts
    }
    bar.add_task("", total=options.repeats * (len(parts_of) + len(summaries_of)))
    for _ in range(options.repeats):
        for sizes, measured in parts_of.items():
            with stage(bar, f"the parts alone, {' '.join(sizes)}"):
                measured.append(parts.preset_row(options.preset, options.game, PARTS_SECONDS, sizes))
        for (allocation, checkout), summaries in summaries_of.items():
            with stage(bar, str(allocation)):
                steps = int(bound(allocation, parts_of[allocation.sizes][0]) * options.seconds)
                summaries.append(trial(allocation, options.game, options.preset, steps, checkout))
    rows = [row(allocation, summaries_of[allocation, None], parts_of[allocation.sizes]) for allocation in tried]
    if options.against:
        for allocation, row_ in zip(tried, rows, strict=True):
            row_["against"] = ratio(summaries_of[allocation, None], summaries_of[allocation, checkouts[1]])
    best = max(rows, key=lambda row: float(row["steps_per_second"]))
    keys = ("layout", "steps_per_second", "bound_steps_per_second", "fraction_of_bound")
    return {"machine": launching.machine(), "game": options.game, "rows": rows} | {key: best[key] for key in keys}


def ratio(summaries: list[Json], others: list[Json]) -> float:
    """How much faster this checkout was than the other: the median over runs that followed each other."""
    pairs = zip(summaries, others, strict=True)
    return float(np.median([one["steps_per_second"] / other["steps_per_second"] for one, other in pairs]))


def bound(allocation: Allocation, measured: Json) -> float:
    """Compute the steps/s of an allocation that does nothing but its parts, on cores that share them without loss."""
    batch_size = allocation.n_sim * allocation.n_steps
    costs = parts.microseconds_per_step(measured, allocation.kind, allocation.n_steps, batch_size)
    return allocation.ranks * allocation.threads * 1e6 / sum(costs.values())


def row(allocation: Allocation, summaries: list[Json], measured: list[Json]) -> Json:
    """Put the repeats of one allocation and of its parts into one row."""
    paces = [summary["steps_per_second"] for summary in summaries]
    shares = {part: float(np.median([s["shares"][part] for s in summaries])) for part in summaries[0]["shares"]}
    pace = float(np.median(paces))
    limit = float(np.median([bound(allocation, costs) for costs in measured]))
    return allocation._asdict() | {
        "layout": str(allocation),
        "steps_per_second": pace,
        "lowest": min(paces),
        "highest": max(paces),
        "bound_steps_per_second": limit,
        "fraction_of_bound": pace / limit,
        "shares": shares,
        "parts": measured,
    }


def table(result: Json) -> Table:
    rows = result["rows"]
    names = [name for name in rows[0]["shares"] if any(row["shares"][name] >= 0.005 for row in rows)]
    heads = ["layout", "steps/s", "spread", "× first", "of bound", *["× other"] * ("against" in rows[0])]
    shown = Table(*heads, *names, title=f"training {result['game']}")
    for row in rows:
        pace = f"{row['steps_per_second']:,.0f}"
        spread = f"{row['lowest']:,.0f}-{row['highest']:,.0f}"
        times = f"{row['steps_per_second'] / rows[0]['steps_per_second']:.2f}"
        shares = [f"{row['shares'][name]:.0%}" for name in names]
        against = [f"{row['against']:.3f}"] if "against" in row else []
        shown.add_row(row["layout"], pace, spread, times, f"{row['fraction_of_bound']:.2f}", *against, *shares)
    return shown
