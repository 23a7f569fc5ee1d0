"""GA3C's adjustment of agents, predictors and trainers, from one of each, against a grid of their numbers."""

from __future__ import annotations

import itertools
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Group
from rich.table import Table

from dba3c import benchmarks
from dba3c.actors.self_tuning import FEWEST_BATCHES, MOST_THREADS, Adjustment, Crew
from dba3c.benchmarks import launching
from dba3c.benchmarks.launching import Bar, stage
from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.timings import Timings
from dba3c.types import Json

HELP = "GA3C's adjustment of agents, predictors and trainers, from one of each, against a grid"
PRESET = "ga3c"
AGENTS = (1, 2, 4, 8, 16, 32)
THREADS = (1, 2)  # predictors, trainers
SETTLE_SECONDS = 0.5  # after a change, before a pace is measured
ROUNDS = 5  # in which where a walk has ended and the best of the grid take turns


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 1.5)
    parser.add_argument("--starts", type=int, default=3, metavar="N", help="walks from 1/1/1 (default: 3)")
    parser.add_argument("--moves", type=int, default=36, metavar="N", help="of each walk (default: 36)")


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure in one process, on all cores, which changes its numbers while it trains."""
    bar.add_task("", total=1)
    cores = launching.cores()
    numbers = options.seconds, options.starts, options.moves
    with stage(bar, f"preset {PRESET}, one rank of {cores} cores"):
        words = [options.game, *map(str, numbers)]
        result = launching.result_of(1, "dba3c.benchmarks.threads.crew", words, threads=cores)
    return {"machine": launching.machine(), "game": options.game} | result


class Training:
    """A rank that trains by itself, whose crew changes at any time."""

    def __init__(self, config: Config, cores: int) -> None:
        from dba3c.actors.asynchronous import Async
        from dba3c.learning.shards import Trainers
        from dba3c.training import build

        self._agent = build.agent(config)
        self._optimizer = build.optimizer(config, self._agent)
        self._actor = cast(Async, build.actor(config, self._agent, 0, cores, Timings()))
        self.crew = self._actor.crew
        self._learner = Trainers(self._agent, lambda: self.crew, MOST_THREADS)

    def batches(self) -> Iterator[float]:
        """Train for ever; yield the time after each batch."""
        self._actor.restart(0)
        for batch in self._actor:
            for gradient in self._learner.gradients(batch):
                self._optimizer.apply(gradient.mean, self._agent.clock)
                clock = self._agent.clock
                self._agent.clock = clock._replace(updates=clock.updates + 1, steps=clock.steps + gradient.steps)
            yield time.perf_counter()

    def close(self) -> None:
        self._actor.close()


def pace(batches: Iterator[float], seconds: float) -> float:
    """Return batches per second, after some time in which the numbers take effect."""
    settled = time.perf_counter() + SETTLE_SECONDS
    start = next(now for now in batches if now >= settled)
    counted = ((count, now - start) for count, now in enumerate(batches, 1))
    return next(count / lasted for count, lasted in counted if lasted >= seconds and count >= FEWEST_BATCHES)


def walk(batches: Iterator[float], crew: Crew, most: Crew, seconds: float, moves: int, seed: int) -> list[str]:
    """Adjust from one of each; return what was told of each move."""
    crew.update(dict.fromkeys(crew, 1))
    adjustment = Adjustment(crew, most, seconds, seed)
    told = (adjustment.trained(now) for now in batches)
    lines = list(itertools.islice(filter(None, told), moves))
    adjustment.settle()
    return lines


def grid_of(most: Crew) -> list[Crew]:
    agents = [count for count in AGENTS if count <= most["agents"]]
    return [
        {"agents": count, "predictors": predictors, "trainers": trainers}
        for count, predictors, trainers in itertools.product(agents, THREADS, THREADS)
    ]


def on_rank(world: World, game: str, seconds: float, starts: int, moves: int, file: Path) -> int:
    """Measure the grid, then let walks end; compare where each has ended with the best of the grid, in turn."""
    load_tensorflow(1)
    config = loading.load(PRESET, [f"env.game={game}"])
    training = Training(config, world.threads)
    crew, batches = training.crew, training.batches()
    most = {"agents": config.env.n_sim // config.actor.group_size, "predictors": MOST_THREADS, "trainers": MOST_THREADS}
    pace(batches, seconds)  # compiles

    def measured(numbers: Crew) -> float:
        crew.update(numbers)
        return pace(batches, seconds)

    rows = [numbers | {"batches_per_second": measured(numbers)} for numbers in grid_of(most)]
    best = {name: int(max(rows, key=lambda row: row["batches_per_second"])[name]) for name in crew}
    walks = []
    for seed in range(starts):
        lines = walk(batches, crew, most, seconds, moves, seed)
        end = dict(crew)
        walks.append({"end": end, "moves": lines, "ratio": against(measured, end, best)})
    training.close()
    result = {"batch": config.batch_size, "grid": rows, "best": best, "walks": walks}
    file.write_text(json.dumps(result), encoding="utf-8")
    return EXIT_OK


def against(measured: Callable[[Crew], float], end: Crew, best: Crew) -> float:
    """Return the pace of one crew over that of another, the median over rounds in which they take turns."""
    return float(np.median([measured(end) / measured(best) for _ in range(ROUNDS)]))


def table(result: Json) -> Group:
    shown = Table(
        "agents", "predictors", "trainers", "batches/s", "steps/s", title=f"preset {PRESET}, {result['game']}"
    )
    for row in result["grid"]:
        counts = [str(row[name]) for name in ("agents", "predictors", "trainers")]
        paces = row["batches_per_second"]
        shown.add_row(*counts, f"{paces:.2f}", f"{paces * result['batch']:,.0f}")
    lines = [
        f"from 1/1/1 in {len(one['moves'])} moves to {'/'.join(map(str, one['end'].values()))}:"
        f" {one['ratio']:.2f} of the pace of {'/'.join(map(str, result['best'].values()))}, the best of the grid"
        for one in result["walks"]
    ]
    return Group(shown, *lines)


if __name__ == "__main__":
    GAME, SECONDS, STARTS, MOVES, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, GAME, float(SECONDS), int(STARTS), int(MOVES), Path(FILE))))
