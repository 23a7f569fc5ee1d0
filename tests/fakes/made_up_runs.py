"""Run directories as a training leaves them, made up."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from dba3c.config import loading
from dba3c.run_files import logs
from dba3c.timings import PARTS

COLUMNS = (
    "seconds", "updates", "steps", "steps_per_second", "online_score", "evaluation_score", "evaluation_games", "lag",
    "skipped", "dropped", *(f"{part}_share" for part in PARTS),
)  # fmt: skip


def row(number: int, **cells: float) -> dict[str, Any]:
    """The row after `number` × 10 s, of a rank that makes 1000 steps/s; no evaluation."""
    usual = {"seconds": 10.0 * number, "updates": 100 * number, "steps": 10_000 * number, "steps_per_second": 1000}
    shares = {"env_share": 0.5, "predict_share": 0.2, "gradient_share": 0.2}
    return usual | shares | {"online_score": 2.0 * number, "lag": 0, "skipped": 0, "dropped": 0} | cells


def write_run(
    path: Path,
    rows: list[dict[str, Any]],
    summary: dict[str, Any] | None = None,
    overrides: tuple[str, ...] = (),
    preset: str = "a2c",
) -> Path:
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(loading.load(preset, overrides).dump(), encoding="utf-8")
    with (path / "metrics.csv").open("w", newline="", encoding="utf-8") as file:
        more = dict.fromkeys(name for cells in rows for name in cells if name not in COLUMNS)
        writer = csv.DictWriter(file, [*COLUMNS, *more])
        writer.writeheader()
        writer.writerows(rows)
    if summary is not None:
        (path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return path


def ended(rows: list[dict[str, Any]], **figures: Any) -> dict[str, Any]:
    """The summary of a run that ended after these rows, on 2 ranks and 2 cores."""
    last = {name: rows[-1][name] for name in ("seconds", "updates", "steps")}
    return last | {"ranks": 2, "cores": 2, "evaluation_score": None, "best_score": None} | figures


def read(*paths: Path) -> list[logs.RunLog]:
    return logs.read(list(paths))
