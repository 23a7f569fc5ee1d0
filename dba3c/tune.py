"""Find the layout that trains fastest on this node: ranks, threads, simulators, player.

dba3c tune --game breakout
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dba3c.benchmarks import launching, pipeline
from dba3c.benchmarks.pipeline import Layout
from dba3c.config import loading
from dba3c.job.command_line import Parser

N_SIMS = (8, 16, 32)


def parser() -> Parser:
    parser = Parser(
        prog="dba3c tune",
        description="Try layouts on this machine or node for a few minutes and print the command and the yaml to use."
        " Let nothing else run meanwhile. Steps/s are not everything: a larger effective batch learns less per step.",
    )
    parser.add_argument("--game", default="breakout", help="default: breakout")
    parser.add_argument("--preset", default="fast", help="default: fast")
    parser.add_argument("--seconds", type=float, default=5.0, help="of training per layout (default: 5)")
    return parser


def candidates(cores: int, preset: str) -> list[Layout]:
    """Ranks of one core, of half the node and of the whole node; few and many games; whatever player can be used."""
    config = loading.load(preset)
    kinds = ("lockstep",) if config.algorithm.name == "ppo" else ("lockstep", "async")
    threads = sorted({1, max(1, cores // 2), cores})
    return [
        Layout(cores // count, count, kind, n_sim * count, config.actor.n_steps)
        for count in threads
        for kind in kinds
        for n_sim in N_SIMS
    ]


def main(argv: list[str]) -> int:
    return launching.command("tune", lambda: tune(parser().parse_args(argv)))


def tune(options: Namespace) -> None:
    best, summary = search(options.game, options.preset, options.seconds)
    print(advice(best, summary, options.game, options.preset))


def search(game: str, preset: str, seconds: float) -> tuple[Layout, dict[str, Any]]:
    """Measure every candidate under a live table; the fastest one."""
    results: dict[Layout, dict[str, Any]] = {}
    pace = 500.0 * launching.cores()  # first guess, to choose the number of steps of a measurement
    with Live(table(results, None), console=Console(stderr=True), auto_refresh=False) as live:
        for layout in candidates(launching.cores(), preset):
            live.update(table(results, layout), refresh=True)
            results[layout] = pipeline.measure(layout, game, preset, int(pace * seconds))
            pace = results[layout]["steps_per_second"]
        best = max(results, key=lambda layout: float(results[layout]["steps_per_second"]))
        live.update(table(results, None), refresh=True)
    return best, results[best]


def table(results: dict[Layout, dict[str, Any]], running: Layout | None) -> Table:
    result = Table("layout", "steps/s", "MB per rank", title=f"{launching.cores()} cores")
    for layout, summary in sorted(results.items(), key=lambda item: -float(item[1]["steps_per_second"])):
        result.add_row(str(layout), f"{summary['steps_per_second']:,.0f}", f"{summary['memory_mb_per_rank']:,}")
    if running is not None:
        result.add_row(str(running), "…", "")
    return result


def advice(best: Layout, summary: dict[str, Any], game: str, preset: str) -> str:
    """What to type and what to write down."""
    command = f"python -m dba3c.train --preset {preset} --game {game} {' '.join(best.arguments)}"
    sections: dict[str, list[str]] = {}
    for key, value in best.keys.items():
        section, name = key.split(".")
        sections.setdefault(section, []).append(f"{name}: {value}")
    yaml = "\n".join(f"  {section}: {{{', '.join(values)}}}" for section, values in sections.items())
    return (
        f"fastest: {best}, {summary['steps_per_second']:,.0f} steps/s\n\n"
        f"on this machine:\n  mpirun {' '.join(launching.launcher(best.ranks, best.threads))} {command}\n\n"
        f"on Slurm nodes like this one:\n"
        f"  srun --mpi=pmix --ntasks-per-node={best.ranks} --cpus-per-task={best.threads} {command}\n\n"
        f"in hyperparams.yaml, as a preset:\n{yaml}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
