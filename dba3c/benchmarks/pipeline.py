"""End-to-end steps/s of the real trainer for several layouts, as fractions of what the parts alone would allow."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dba3c.benchmarks import launching
from dba3c.benchmarks.parts import microseconds_per_step


class Layout(NamedTuple):
    """How a machine is divided, and what plays."""

    ranks: int
    threads: int
    kind: str  # actor.kind
    n_sim: int
    n_steps: int = 5

    @property
    def keys(self) -> dict[str, str]:
        """The configuration keys that make this layout."""
        batch = {"train.batch_size": str(self.n_sim * self.n_steps)}
        group = {"actor.group_size": str(max(1, self.n_sim // 2))} if self.kind == "async" else {}
        return (
            {"actor.kind": self.kind, "actor.n_steps": str(self.n_steps), "env.n_sim": str(self.n_sim)} | batch | group
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """What one core of this layout does, as configuration: layouts that share it share the costs of their parts."""
        return tuple(f"{key}={value}" for key, value in self._replace(n_sim=self.n_sim // self.threads).keys.items())

    @property
    def arguments(self) -> list[str]:
        return [f"--{key}={value}" for key, value in self.keys.items()]

    def __str__(self) -> str:
        cores = f"{self.ranks} rank{'s' * (self.ranks > 1)} × {self.threads} core{'s' * (self.threads > 1)}"
        return f"{cores}, {self.kind}, {self.n_sim} games × {self.n_steps} steps"


def layouts(cores: int) -> list[Layout]:
    """One rank on one core, then one rank per core, then one rank on all cores."""
    per_core = [Layout(cores, 1, "lockstep", 32, 20), Layout(cores, 1, "lockstep", 16), Layout(cores, 1, "async", 16)]
    return [Layout(1, 1, "lockstep", 32, 20), *per_core, Layout(1, cores, "lockstep", 32 * cores, 20)]


def measure(layout: Layout, game: str, preset: str, steps: int) -> dict[str, Any]:
    """One real training run of `steps` steps; its summary."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--evaluate.games=0", "--checkpoint.every_updates=0"]
        order = ["--preset", preset, "--game", game, "--run-dir", folder, f"--train.total_steps={steps}"]
        launching.run(layout.ranks, "dba3c.train", order + quiet + layout.arguments, layout.threads)
        summary: dict[str, Any] = json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))
    return summary


def bound(layout: Layout, measured: dict[str, Any]) -> float:
    """Steps/s if a layout did nothing but its parts, and the cores shared them without loss."""
    costs = microseconds_per_step(measured, layout.kind, layout.n_steps, layout.n_sim * layout.n_steps)
    return layout.ranks * layout.threads * 1e6 / sum(costs.values())


def row(layout: Layout, summaries: list[dict[str, Any]], measured: list[dict[str, Any]]) -> dict[str, Any]:
    """The repeats of one layout and of its parts as one row."""
    paces = [summary["steps_per_second"] for summary in summaries]
    shares = {part: float(np.median([s["shares"][part] for s in summaries])) for part in summaries[0]["shares"]}
    pace, limit = float(np.median(paces)), float(np.median([bound(layout, parts) for parts in measured]))
    return layout._asdict() | {
        "layout": str(layout),
        "steps_per_second": pace,
        "lowest": min(paces),
        "highest": max(paces),
        "bound_steps_per_second": limit,
        "fraction_of_bound": pace / limit,
        "shares": shares,
        "parts": measured,
    }
