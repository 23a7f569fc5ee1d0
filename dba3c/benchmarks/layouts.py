"""Ways to divide a machine among ranks, threads and simulators; which of them trains fastest, and how to use it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dba3c.benchmarks import launching
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.types import Json

SIMULATORS_PER_CORE = (8, 16, 32)  # of an async rank, whose batches do not depend on them
CREWS = ((1, 1), (2, 1), (1, 2), (2, 2))  # predicting and training threads of an async rank of several cores
ONLY_TRAINING = ["--evaluate.games=0", "--checkpoint.every_updates=0"]
FEWEST_UPDATES = 4  # of a trial: the first compiles and is not counted


class Allocation(NamedTuple):
    """How a machine is divided among ranks, and the actor and simulators of each."""

    ranks: int
    threads: int
    kind: str  # actor.kind
    n_sim: int
    n_steps: int = 5
    shards_per_core: int = 1  # of a lockstep rank of several cores
    predictors: int = 1  # of an async rank
    trainers: int = 1
    batch: int = 0  # samples per rank and update of an async rank; 0: what its simulators play in n_steps

    @property
    def keys(self) -> dict[str, str]:
        """Name the configuration keys that make this allocation."""
        keys = {"actor.kind": self.kind, "actor.n_steps": str(self.n_steps), "env.n_sim": str(self.n_sim)}
        keys["train.batch_size"] = str(self.batch or self.n_sim * self.n_steps)
        if self.kind == "async":
            keys["actor.group_size"] = str(max(1, self.n_sim // (2 * self.threads)))
            crew = {"actor.predictors": self.predictors, "actor.trainers": self.trainers}
            keys |= {key: str(count) for key, count in crew.items() if count > 1}
        elif self.threads > 1:
            keys["actor.shards"] = str(self.threads * self.shards_per_core)
        return keys

    @property
    def sizes(self) -> tuple[str, ...]:
        """Write one core's work as configuration: allocations that share it share the costs of their parts."""
        one_core = self._replace(n_sim=self.n_sim // self.threads, threads=1)
        return tuple(f"{key}={value}" for key, value in one_core.keys.items())

    @property
    def arguments(self) -> list[str]:
        return self.arguments_for(loading.HYPERPARAMS)

    def arguments_for(self, hyperparams: Path) -> list[str]:
        """Write the keys that a version of dba3c has, as its hyperparams.yaml shows."""
        sections = loading.read_yaml(hyperparams)
        return [
            f"--{key}={value}" for key, value in self.keys.items() if key.split(".")[1] in sections[key.split(".")[0]]
        ]

    @property
    def steps_per_update(self) -> int:
        return self.ranks * (self.batch or self.n_sim * self.n_steps)

    def __str__(self) -> str:
        cores = f"{self.ranks} rank{'s' * (self.ranks > 1)} × {self.threads} core{'s' * (self.threads > 1)}"
        shards = f", {self.threads * self.shards_per_core} shards" if self.shards_per_core > 1 else ""
        crew = (
            f", {self.predictors} predictors, {self.trainers} trainers" if self.predictors + self.trainers > 2 else ""
        )
        return f"{cores}, {self.kind}{shards}{crew}, {self.n_sim} simulators × {self.n_steps} steps"


def trial(allocation: Allocation, game: str, preset: str, steps: int, checkout: Path | None = None) -> Json:
    """Train for real for `steps` steps, or for a few updates if those are more; return the run's summary."""
    steps = max(steps, FEWEST_UPDATES * allocation.steps_per_update)
    with tempfile.TemporaryDirectory() as folder:
        hyperparams = checkout / "hyperparams.yaml" if checkout else loading.HYPERPARAMS
        order = [
            "--preset",
            loading.name_in(preset, hyperparams),
            "--game",
            game,
            "--run-dir",
            folder,
            f"--train.total_steps={steps}",
        ]
        words = order + ONLY_TRAINING + allocation.arguments_for(hyperparams)
        launching.run(allocation.ranks, "dba3c.train", words, allocation.threads, checkout=checkout)
        summary: Json = json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))
    return summary


def usual_batch(cores: int, preset: str) -> int:
    """Return the samples per update of a preset with a rank on each core."""
    return cores * loading.load(preset).batch_size


def candidates(cores: int, preset: str, batch: int) -> list[Allocation]:
    """List ways to make updates of `batch` samples: ranks of one core, of half the node, of all; every usable actor."""
    config = loading.load(preset)
    found: list[Allocation] = []
    for threads in sorted({1, max(1, cores // 2), cores}):
        ranks = cores // threads
        if batch % ranks:
            continue
        found += lockstep(ranks, threads, batch // ranks, config.actor.n_steps)
        if not config.several_passes:
            found += asynchronous(ranks, threads, batch // ranks, config.actor.n_steps)
    if not found:
        raise ConfigError(
            f"--batch={batch}: cannot be divided among the {cores} cores in segments of actor.n_steps="
            f"{config.actor.n_steps}; use a multiple of {cores * config.actor.n_steps}"
        )
    return found


def lockstep(ranks: int, threads: int, batch: int, n_steps: int) -> list[Allocation]:
    """List lockstep ranks: their simulators are as many as a batch needs, in one or two equal shards for each core."""
    n_sim, rest = divmod(batch, n_steps)
    per_core = (1,) if threads == 1 else (1, 2)
    fitting = [shards for shards in per_core if not rest and n_sim and n_sim % (threads * shards) == 0]
    return [Allocation(ranks, threads, "lockstep", n_sim, n_steps, shards) for shards in fitting]


def asynchronous(ranks: int, threads: int, batch: int, n_steps: int) -> list[Allocation]:
    """List asynchronous ranks: GA3C's agents, predictors and trainers."""
    return [
        Allocation(ranks, threads, "async", n_sim * threads, n_steps, 1, predictors, trainers, batch)
        for predictors, trainers in (CREWS if threads > 1 else CREWS[:1])
        for n_sim in SIMULATORS_PER_CORE
    ]


def search(game: str, preset: str, seconds: float, batch: int) -> tuple[Allocation, Json]:
    """Measure every candidate under a live table; return the fastest one and its summary."""
    summaries: dict[Allocation, Json] = {}
    pace = 500.0 * launching.cores()  # steps/s, a first guess that the first trial corrects
    tried = candidates(launching.cores(), preset, batch)
    with Live(table(summaries, None), console=Console(stderr=True), auto_refresh=False) as live:
        for allocation in tried:
            live.update(table(summaries, allocation), refresh=True)
            summaries[allocation] = trial(allocation, game, preset, int(pace * seconds))
            pace = summaries[allocation]["steps_per_second"]
        live.update(table(summaries, None), refresh=True)
    best = max(summaries, key=lambda allocation: float(summaries[allocation]["steps_per_second"]))
    return best, summaries[best]


def table(summaries: dict[Allocation, Json], running: Allocation | None) -> Table:
    """Show the allocations measured so far, the fastest first, and the one that is being measured."""
    result = Table("layout", "steps/s", "MB per rank", title=f"{launching.cores()} cores")
    for allocation, summary in sorted(summaries.items(), key=lambda item: -float(item[1]["steps_per_second"])):
        result.add_row(str(allocation), f"{summary['steps_per_second']:,.0f}", f"{summary['memory_mb_per_rank']:,}")
    if running is not None:
        result.add_row(str(running), "…", "")
    return result


def advice(best: Allocation, summary: Json, game: str, preset: str) -> str:
    """Write the commands to type and the preset to keep."""
    command = f"python -m dba3c.train --preset {preset} --game {game} {' '.join(best.arguments)}"
    return (
        f"fastest with {best.steps_per_update:,} samples per update: {best},"
        f" {summary['steps_per_second']:,.0f} steps/s\n\n"
        f"on this machine:\n  mpirun {' '.join(launching.launcher(best.ranks, best.threads))} {command}\n\n"
        f"on Slurm nodes like this one:\n"
        f"  srun --mpi=pmix --ntasks-per-node={best.ranks} --cpus-per-task={best.threads} {command}\n\n"
        f"in hyperparams.yaml, as a preset:\n{sections(best)}"
    )


def sections(allocation: Allocation) -> str:
    """Write an allocation's keys as the sections of a preset."""
    found: dict[str, list[str]] = {}
    for key, value in allocation.keys.items():
        section, name = key.split(".")
        found.setdefault(section, []).append(f"{name}: {value}")
    return "\n".join(f"  {section}: {{{', '.join(values)}}}" for section, values in found.items())
