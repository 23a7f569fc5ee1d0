"""The logs of a run, config.yaml, metrics.csv and summary.json: read them, and write small copies of them."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.types import Array, Json

MOST_ROWS = 300  # rows of metrics.csv that a small copy keeps


class Evaluated(NamedTuple):
    """One evaluation: the mean score of its greedy episodes, and how many they were (0: unknown)."""

    score: float
    episodes: int


class RunLog(NamedTuple):
    """What the logs of one run hold."""

    name: str  # short, and unique among the runs that were read together
    config: Config
    metrics: dict[str, Array]  # column → [rows], NaN where a cell is empty
    summary: Json  # empty until the training ends for the first time

    def column(self, name: str) -> Array:
        """Return a column of metrics.csv; NaN if the version of dba3c that wrote the file did not have it."""
        return self.metrics.get(name, np.full(self.rows, np.nan))

    @property
    def rows(self) -> int:
        return len(next(iter(self.metrics.values()), ()))

    def newest(self, name: str) -> float | None:
        """Return the newest value of a column; None if it has none."""
        values = self.column(name)
        values = values[~np.isnan(values)]
        return float(values[-1]) if len(values) else None

    def counted(self, name: str) -> float:
        """Return the newest value of a counter: a resumed run has newer rows than its summary.json."""
        return max(self.newest(name) or 0.0, self.summary.get(name) or 0.0)

    @property
    def ended(self) -> bool:
        """Return whether the training has ended and has not been resumed since."""
        return bool(self.summary) and self.counted("updates") <= (self.summary.get("updates") or 0)

    @property
    def core_hours(self) -> float | None:
        """Return cores × hours; None until summary.json says how many cores there were."""
        cores = self.summary.get("cores")
        return None if cores is None else cores * self.counted("seconds") / 3600

    @property
    def evaluated(self) -> Evaluated | None:
        """Return the newest evaluation; None if there has been none."""
        scores, episodes = self.column("evaluation_score"), self.column("evaluation_games")
        rows = np.flatnonzero(~np.isnan(scores))
        if len(rows):
            count = episodes[rows[-1]]
            return Evaluated(float(scores[rows[-1]]), 0 if np.isnan(count) else int(count))
        score = self.summary.get("evaluation_score")
        return None if score is None else Evaluated(float(score), int(self.summary.get("evaluation_games") or 0))


def read(paths: list[Path]) -> list[RunLog]:
    """Read the logs of run directories; ConfigError if one has none."""
    unique = {path.resolve(): path for path in paths}
    return [read_one(path, name) for path, name in zip(unique.values(), short_names(list(unique)), strict=True)]


def read_all(folder: Path) -> list[RunLog]:
    """Read the logs of every run in a folder; ConfigError if there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; name one that dba3c export --logs has written, such as docs/runs")
    return read(sorted(path.parent for path in folder.glob("*/config.yaml")))


def read_one(path: Path, name: str) -> RunLog:
    """Read the logs of one run directory, which `name` stands for."""
    if not path.is_dir():
        raise ConfigError(
            f"{path}: no such run directory; name one that dba3c train has written, such as runs/breakout"
        )
    for needed in ("metrics.csv", "config.yaml"):
        if not (path / needed).is_file():
            raise ConfigError(f"{path}: holds no {needed}; name the run directory of a training that has started")
    try:
        config = parse((path / "config.yaml").read_text(encoding="utf-8"))
        metrics = read_metrics(path / "metrics.csv")
        summary = read_summary(path / "summary.json")
    except (OSError, ValueError, ConfigError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; name another run directory") from None
    return RunLog(name, config, metrics, summary)


def short_names(paths: list[Path]) -> list[str]:
    """Return as many last parts of each path as all paths need to have different names."""
    for length in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def read_metrics(file: Path) -> dict[str, Array]:
    """Read the columns as numbers; rows that a run wrote again after resuming replace the older ones."""
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    kept: list[dict[str, str]] = []
    for row in rows:
        updates = parse_number(row.get("updates"))
        if math.isnan(updates):  # a line that was cut short when the machine stopped
            continue
        if kept and parse_number(kept[-1]["updates"]) > updates:
            kept = [earlier for earlier in kept if parse_number(earlier["updates"]) < updates]
        kept.append(row)
    names = [name for name in (rows[0] if rows else ()) if name]
    return {name: np.array([parse_number(row.get(name)) for row in kept]) for name in names}


def parse_number(cell: str | None) -> float:
    """Return the number in a cell; NaN if there is none."""
    try:
        return math.nan if cell is None else float(cell)
    except ValueError:
        return math.nan


def read_summary(file: Path) -> Json:
    """Read summary.json; empty if there is no such file, ValueError if it is damaged."""
    if not file.is_file():
        return {}
    summary = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(summary, dict):
        raise ValueError(f"{file.name} is not a JSON object")
    return summary


def export_logs(path: Path, run: RunLog, folder: Path) -> Path:
    """Write a small copy of a run's logs to a folder of the same name inside `folder`, and return its path."""
    target = folder / path.resolve().name
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / "config.yaml", run.config.dump().encode())
    if run.summary:
        write_atomically(target / "summary.json", (json.dumps(run.summary, indent=2) + "\n").encode())
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(run.metrics)
    writer.writerows([format_number(value) for value in row] for row in thinned(run))
    write_atomically(target / "metrics.csv", table.getvalue().encode())
    return target


def thinned(run: RunLog) -> list[list[float]]:
    """Choose at most MOST_ROWS rows, up to half of them with evaluations; dropped gradients keep their sum."""
    with_evaluation = ~np.isnan(run.column("evaluation_score"))
    evaluations = evenly(np.flatnonzero(with_evaluation), MOST_ROWS // 2)
    kept = sorted({*evaluations, *evenly(np.flatnonzero(~with_evaluation), MOST_ROWS - len(evaluations))})
    columns = {name: column[kept] for name, column in run.metrics.items()}
    if "dropped" in columns:  # counted row by row
        columns["dropped"] = np.diff(np.nancumsum(run.column("dropped"))[kept], prepend=0.0)
    return [list(row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]


def evenly(numbers: Array, count: int) -> list[int]:
    """Choose at most `count` of the numbers at even distances, the first and the last among them."""
    places = np.linspace(0, len(numbers) - 1, min(count, len(numbers))).round().astype(np.int64)
    chosen: list[int] = numbers[places].tolist()
    return chosen


def format_number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"
