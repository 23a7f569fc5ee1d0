"""python -m dba3c.bench: argv → measurement → table and JSON."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dba3c.benchmarks import launching, parts, peers, pipeline, plots, prediction, scaling, stragglers, tables
from dba3c.benchmarks.options import parse
from dba3c.config import loading
from dba3c.job.exit import EXIT_OK, agreed
from dba3c.job.process import load_tensorflow, terminal
from dba3c.job.world import World, launched, run_job
from dba3c.run_files import write_atomically

TORSOS = {"paac": "nips", "paper": "ba3c"}  # of the presets


# A log file has no edge to wrap at; neither has the stdout that a launcher shows us, which looks like a terminal.
CONSOLE = (
    Console(highlight=False)
    if sys.stdout.isatty() and not launched()
    else Console(width=140, color_system=None, highlight=False)
)


def main(argv: list[str]) -> int:
    if argv[:1] == ["scaling"] and launched():
        return run_job(lambda world: scale(world, argv))
    return launching.command("bench", lambda: measure(parse(argv), argv))


def scale(world: World, argv: list[str]) -> int:
    """One rank's part in a scaling measurement; rank 0 shows and writes the result."""
    options = agreed(world, lambda: parse(argv))
    load_tensorflow(world.threads)
    with progress_bar(quiet=world.rank != 0) as bar:
        result = scaling.on_ranks(world, options, bar)
    if world.rank == 0:
        CONSOLE.print(tables.scaling(result), tables.transports(result))
        if result["hidden"]:
            CONSOLE.print(tables.hidden(result))
        write(options.json, result)
        if options.plot:
            plots.scaling(result, options.plot)
    return EXIT_OK


def measure(options: Namespace, argv: list[str]) -> None:
    if options.command == "scaling":
        launching.run(launching.cores(), "dba3c.bench", argv, show=True)
        return
    run = {"parts": run_parts, "pipeline": run_pipeline, "peers": run_peers}
    run |= {"predict": run_predict, "stragglers": run_stragglers}
    result = run[options.command](options)
    write(options.json, result)


def write(file: Path | None, result: dict[str, Any]) -> None:
    if file:
        write_atomically(file, (json.dumps(result, indent=2) + "\n").encode())


def progress_bar(quiet: bool = False) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(file=terminal() or sys.stderr, quiet=quiet), transient=True)


def run_parts(options: Namespace) -> dict[str, Any]:
    rows = []
    with progress_bar() as bar:
        task = bar.add_task("parts", total=len(parts.PRESETS))
        for torso in parts.PRESETS:
            bar.update(task, description=f"parts: {torso}")
            rows.append(part_row(torso, options.game, options.seconds))
            bar.advance(task)
    CONSOLE.print(tables.parts(rows, launching.cores()), *map(tables.arithmetic, rows), sep="\n")
    return {"machine": launching.machine(), "rows": rows}


def part_row(torso: str, game: str, seconds: float) -> dict[str, Any]:
    """The parts of a torso as the preset that uses it puts them together."""
    row = parts.measure(torso, game, seconds, launching.cores())
    preset = loading.load(parts.PRESETS[torso])
    costs = parts.microseconds_per_step(row, preset.actor.kind, preset.actor.n_steps, preset.batch_size)
    bound = launching.cores() * 1e6 / sum(costs.values())
    return row | {"microseconds_per_step": costs, "bound_steps_per_second": bound}


def run_pipeline(options: Namespace) -> dict[str, Any]:
    """Layouts in turn, each round after its parts alone, so that a noisy minute hits them all."""
    layouts = pipeline.layouts(launching.cores())
    parts_of: dict[tuple[str, ...], list[dict[str, Any]]] = {layout.sizes: [] for layout in layouts}
    summaries: dict[pipeline.Layout, list[dict[str, Any]]] = {layout: [] for layout in layouts}
    with progress_bar() as bar:
        task = bar.add_task("", total=options.repeats * (len(parts_of) + len(layouts)))
        for _ in range(options.repeats):
            for sizes, measured in parts_of.items():
                bar.update(task, description=f"the parts alone, {' '.join(sizes)}")
                measured.append(parts.measure(TORSOS[options.preset], options.game, 2.0, launching.cores(), sizes))
                bar.advance(task)
            for layout in layouts:
                bar.update(task, description=str(layout))
                steps = int(pipeline.bound(layout, parts_of[layout.sizes][0]) * options.seconds)
                summaries[layout].append(pipeline.measure(layout, options.game, options.preset, steps))
                bar.advance(task)
    rows = [pipeline.row(layout, runs, parts_of[layout.sizes]) for layout, runs in summaries.items()]
    CONSOLE.print(tables.pipeline(rows, options.game))
    best = max(rows, key=lambda row: row["steps_per_second"])
    keys = ("layout", "steps_per_second", "bound_steps_per_second", "fraction_of_bound")
    return {"machine": launching.machine(), "rows": rows} | {key: best[key] for key in keys}


def run_peers(options: Namespace) -> dict[str, Any]:
    """Our trainer and each peer in turn, and the ratio of their medians.

    All learn from segments of 5 steps; ours may choose between 32 and 64 games per rank, the peers have choices, too.
    """
    ours = [pipeline.Layout(launching.cores(), 1, "lockstep", n_sim) for n_sim in (32, 64)]
    paces: dict[str, list[float]] = {name: [] for name in ("dba3c", *(peer.name for peer in peers.PEERS))}
    with progress_bar() as bar:
        task = bar.add_task("installing the peers", total=len(peers.PEERS) + options.repeats * len(paces))
        for peer in peers.PEERS:
            peers.environment(peer)
            bar.advance(task)
        steps = int(1000 * launching.cores() * options.seconds)
        for _ in range(options.repeats):
            bar.update(task, description="dba3c")
            found = [pipeline.measure(layout, options.game, "paac", steps)["steps_per_second"] for layout in ours]
            paces["dba3c"].append(max(found))
            bar.advance(task)
            for peer in peers.PEERS:
                bar.update(task, description=peer.name)
                paces[peer.name].append(peers.measure(peer, options.game, options.seconds)["steps_per_second"])
                bar.advance(task)
    rows = peer_rows(paces)
    CONSOLE.print(tables.peers(rows, options.game))
    return {"machine": launching.machine(), "rows": rows, "ratio": {row["system"]: row["ratio"] for row in rows[1:]}}


def peer_rows(paces: dict[str, list[float]]) -> list[dict[str, Any]]:
    medians = {name: statistics.median(values) for name, values in paces.items()}
    return [
        {
            "system": name,
            "steps_per_second": medians[name],
            "lowest": min(values),
            "highest": max(values),
            "ratio": medians["dba3c"] / medians[name],
        }
        for name, values in paces.items()
    ]


def run_stragglers(options: Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, progress_bar() as bar:
        bar.add_task("stragglers", total=None)
        file = Path(folder) / "rows.json"
        launching.run(8, "dba3c.benchmarks.stragglers", [str(options.seconds), str(file)], oversubscribe=True)
        result = stragglers.result(json.loads(file.read_text(encoding="utf-8")))
    CONSOLE.print(tables.stragglers(result))
    return {"machine": launching.machine()} | result


def run_predict(options: Namespace) -> dict[str, Any]:
    with progress_bar() as bar:
        bar.add_task("measuring this machine, then simulating", total=None)
        measured = prediction.measure(options.preset, options.game, options.seconds, options.overrides)
        rows = prediction.all_rows(options.nodes, options.network, options.cores, measured)
    facts = {
        "preset": options.preset,
        "compute_seconds": float(measured.computing.mean()),
        "compute_spread": float(measured.computing.std()),
        "message_bytes": measured.message,
        "inside_seconds": measured.inside,
    }
    result = {"machine": launching.machine(), "cores_per_node": options.cores, "measured": facts, "rows": rows}
    CONSOLE.print(tables.prediction(result))
    if options.plot:
        plots.prediction(result, options.plot)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
