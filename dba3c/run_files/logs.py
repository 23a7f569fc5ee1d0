"""What a run left: config.yaml, metrics.csv and summary.json, read without TensorFlow."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.types import Array


class Evaluated(NamedTuple):
    """One evaluation: its mean score and how many greedy games that is of (0: not noted)."""

    score: float
    games: int


class RunLog(NamedTuple):
    name: str  # short, and different from those of the runs it was read with
    config: Config
    metrics: dict[str, Array]  # column → [rows], NaN where a cell is empty
    summary: dict[str, Any]  # empty before the first end of the training

    def column(self, name: str) -> Array:
        """A column of metrics.csv; NaN where a version of the program did not write it."""
        return self.metrics.get(name, np.full(self.rows, np.nan))

    @property
    def rows(self) -> int:
        return len(next(iter(self.metrics.values()), ()))

    def newest(self, name: str) -> float | None:
        """The newest value of a column."""
        values = self.column(name)
        values = values[~np.isnan(values)]
        return float(values[-1]) if len(values) else None

    def counted(self, name: str) -> float:
        """A counter at its newest: summary.json is written at the end only, so a resumed run may be past it."""
        return max(self.newest(name) or 0.0, self.summary.get(name) or 0.0)

    @property
    def ended(self) -> bool:
        """The training has ended, and has not been resumed since."""
        return bool(self.summary) and self.counted("updates") <= (self.summary.get("updates") or 0)

    @property
    def core_hours(self) -> float | None:
        cores = self.summary.get("cores")
        return None if cores is None else cores * self.counted("seconds") / 3600

    @property
    def evaluated(self) -> Evaluated | None:
        """The newest evaluation."""
        scores, games = self.column("evaluation_score"), self.column("evaluation_games")
        rows = np.flatnonzero(~np.isnan(scores))
        if len(rows):
            count = games[rows[-1]]
            return Evaluated(float(scores[rows[-1]]), 0 if np.isnan(count) else int(count))
        score = self.summary.get("evaluation_score")
        return None if score is None else Evaluated(float(score), 0)


def read(paths: list[Path]) -> list[RunLog]:
    """The logs of run directories; ConfigError if one has none."""
    unique = {path.resolve(): path for path in paths}
    return [read_one(path, name) for path, name in zip(unique.values(), short_names(list(unique)), strict=True)]


def read_one(path: Path, name: str) -> RunLog:
    if not path.is_dir():
        raise ConfigError(f"{path}: no such run directory; name one that dba3c train has written, as runs/breakout")
    for needed in ("metrics.csv", "config.yaml"):
        if not (path / needed).is_file():
            raise ConfigError(f"{path}: holds no {needed}; name the run directory of a training that has begun")
    try:
        config = parse((path / "config.yaml").read_text(encoding="utf-8"))
        metrics = read_metrics(path / "metrics.csv")
        summary = read_summary(path / "summary.json")
    except (OSError, ValueError, ConfigError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; name another run directory") from None
    return RunLog(name, config, metrics, summary)


def short_names(paths: list[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    for length in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def read_metrics(file: Path) -> dict[str, Array]:
    """Columns as numbers; of updates that were made twice, as after a crash, the later rows count."""
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    kept: list[dict[str, Any]] = []
    for row in rows:
        updates = number(row.get("updates"))
        if math.isnan(updates):  # a line that was being written when the machine stopped
            continue
        if kept and number(kept[-1]["updates"]) > updates:
            kept = [one for one in kept if number(one["updates"]) < updates]
        kept.append(row)
    names = [name for name in (rows[0] if rows else ()) if name]
    return {name: np.array([number(row.get(name)) for row in kept]) for name in names}


def number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def read_summary(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    summary = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(summary, dict):
        raise ValueError(f"{file.name} holds no figures")
    return summary


ROWS = 300  # of metrics.csv that are kept


def export_logs(path: Path, run: RunLog, folder: Path) -> Path:
    target = folder / path.resolve().name
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / "config.yaml", run.config.dump().encode())
    if run.summary:
        write_atomically(target / "summary.json", (json.dumps(run.summary, indent=2) + "\n").encode())
    with (target / "metrics.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(run.metrics)
        writer.writerows([text(value) for value in row] for row in thinned(run))
    return target


def thinned(run: RunLog) -> list[list[float]]:
    """Evenly chosen rows; those with an evaluation are the last to be left out, and no dropped gradient is lost."""
    there = ~np.isnan(run.column("evaluation_score"))
    evaluated = spread(np.flatnonzero(there), ROWS // 2)
    kept = sorted({*evaluated, *spread(np.flatnonzero(~there), ROWS - len(evaluated))})
    columns = {name: column[kept] for name, column in run.metrics.items()}
    if "dropped" in columns:  # counted row by row
        columns["dropped"] = np.diff(np.nancumsum(run.column("dropped"))[kept], prepend=0.0)
    return [list(row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]


def spread(numbers: Array, count: int) -> list[int]:
    """At most `count` of them, evenly, with the first and the last."""
    places = np.linspace(0, len(numbers) - 1, min(count, len(numbers))).round().astype(np.int64)
    chosen: list[int] = numbers[places].tolist()
    return chosen


def text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"
