"""End-to-end steps/s of the real trainer for several layouts, as fractions of what the parts alone would allow."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dba3c.bench import ranks


class Layout(NamedTuple):
    """How a machine is divided, and what plays."""

    ranks: int
    kind: str  # actor.kind
    n_sim: int
    n_steps: int = 5

    @property
    def arguments(self) -> list[str]:
        batch = f"--train.batch_size={self.n_sim * self.n_steps}"
        group = f"--actor.group_size={max(1, self.n_sim // 2)}"
        return [
            f"--actor.kind={self.kind}",
            f"--env.n_sim={self.n_sim}",
            f"--actor.n_steps={self.n_steps}",
            batch,
            group,
        ]

    def __str__(self) -> str:
        return f"{self.ranks} × {self.kind}, {self.n_sim} games × {self.n_steps} steps"


def layouts(cores: int) -> list[Layout]:
    """One rank on one core, then one rank per core."""
    return [
        Layout(1, "lockstep", 16),
        Layout(cores, "lockstep", 16),
        Layout(cores, "lockstep", 32),
        Layout(cores, "async", 16),
    ]


def measure(layout: Layout, game: str, preset: str, steps: int) -> dict[str, Any]:
    """One real training run of `steps` steps; its summary."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--evaluate.games=0", "--checkpoint.every_updates=0"]
        order = ["--preset", preset, "--game", game, "--run-dir", folder, f"--train.total_steps={steps}"]
        ranks.run(layout.ranks, "dba3c.train", order + quiet + layout.arguments)
        summary: dict[str, Any] = json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))
    return summary


def row(layout: Layout, summaries: list[dict[str, Any]], bound_per_core: float) -> dict[str, Any]:
    """The repeats of one layout as one row."""
    paces = [summary["steps_per_second"] for summary in summaries]
    shares = {part: float(np.mean([s["shares"][part] for s in summaries])) for part in summaries[0]["shares"]}
    bound = bound_per_core * layout.ranks
    return layout._asdict() | {
        "layout": str(layout),
        "steps_per_second": float(np.median(paces)),
        "lowest": min(paces),
        "highest": max(paces),
        "bound_steps_per_second": bound,
        "fraction_of_bound": float(np.median(paces)) / bound,
        "shares": shares,
    }
