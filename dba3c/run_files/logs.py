"""The logs of a run, config.yaml, metrics.csv and summary.json: read them, and write small copies of them."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError, MissingPluginError, shown
from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.run_files.untrusted import MOST_NUMBER, parse_json, parse_number, read_table
from dba3c.run_files.untrusted import read as read_file
from dba3c.types import Array, Json

MOST_ROWS = 300  # rows of metrics.csv that a small copy keeps
MOST_COLUMNS = 200
MOST_CELLS = 10**7  # of metrics.csv: forty days of a row every ten seconds
LEAST_CELLS = 10  # that a row counts as: it takes memory of its own
EVALUATIONS = "evaluation-*.json"  # what dba3c evaluate --json may leave in a run directory
FILMS = (".mp4", ".gif")
SMALL_FILE = 10**6  # bytes of config.yaml and summary.json
# Numbers in summary.json, from 0.
COUNTS = ("steps", "updates", "seconds", "cores", "ranks", "evaluation_games", "evaluation_cut")
SCORES = ("evaluation_score", "best_score", "online_score")


class Evaluated(NamedTuple):
    """One evaluation: the mean score of its episodes, and how many they were (0: unknown)."""

    score: float
    episodes: int
    cut: int = 0  # episodes that had not come to their end, so that the score is not comparable


class RunLog(NamedTuple):
    """What the logs of one run hold."""

    name: str  # short, and unique among the runs that were read together
    config: Config
    metrics: dict[str, Array]  # column → [rows], NaN where a cell is empty
    summary: Json  # empty until the training ends for the first time
    film: Path | None = None  # in the run directory
    path: Path | None = None  # of the run directory

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
        scores = self.column("evaluation_score")
        rows = np.flatnonzero(~np.isnan(scores))
        if len(rows):
            counts = [self.column(name)[rows[-1]] for name in ("evaluation_games", "evaluation_cut")]
            return Evaluated(float(scores[rows[-1]]), *(0 if np.isnan(count) else int(count) for count in counts))
        score = self.summary.get("evaluation_score")
        counts = [int(self.summary.get(name) or 0) for name in ("evaluation_games", "evaluation_cut")]
        return None if score is None else Evaluated(float(score), *counts)


def read(paths: list[Path]) -> list[RunLog]:
    """Read the logs of run directories, and of folders of them; ConfigError if one has none."""
    unique = {Path(os.path.realpath(path)): path for path in run_directories(paths)}
    return [read_one(path, name) for path, name in zip(unique.values(), short_names(list(unique)), strict=True)]


def run_directories(paths: list[Path]) -> list[Path]:
    """Replace folders of run directories, such as that of a sweep, by what they hold."""
    found: list[Path] = []
    for path in paths:
        inside = [] if (path / "config.yaml").is_file() else sorted(file.parent for file in path.glob("*/config.yaml"))
        found += inside or [path]
    return found


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
        config = parse(read_file(path / "config.yaml", SMALL_FILE).decode())
        metrics = read_metrics(path / "metrics.csv")
        summary = read_summary(path / "summary.json")
    except MissingPluginError as error:
        raise MissingPluginError(f"{path}: {error}") from None
    except (OSError, ValueError, ConfigError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; name another run directory") from None
    return RunLog(name, config, metrics, summary, find_film(path), path)


def find_film(path: Path) -> Path | None:
    """Return a film in a run directory, as dba3c record --out RUN_DIR/film.mp4 leaves it."""
    return next((file for kind in FILMS for file in sorted(path.glob(f"*{kind}")) if file.is_file()), None)


def short_names(paths: list[Path]) -> list[str]:
    """Return as many last parts of each path as all paths need to have different names, in printable letters."""
    for length in range(1, max((len(path.parts) for path in paths), default=1)):
        names = [printable("/".join(path.parts[-length:])) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [printable(str(path)) for path in paths]


def printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in name)


def read_metrics(file: Path) -> dict[str, Array]:
    """Read the columns as numbers; rows that a run wrote again after resuming replace the older ones."""
    table = read_table(file)
    names = next(table, [])
    if not names:
        return {}
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"{file.name}: has more than {MOST_COLUMNS} columns")
    if "updates" not in names:
        raise ValueError(f"{file.name}: has no column updates")
    place = names.index("updates")
    kept: list[array[float]] = []
    for row in table:
        numbers = array("d", (parse_number(cell) for cell in row[: len(names)]))
        numbers.extend([math.nan] * (len(names) - len(numbers)))
        if math.isnan(numbers[place]):  # a line that was cut short when the machine stopped
            continue
        if kept and kept[-1][place] > numbers[place]:
            drop_from(kept, place, numbers[place])
        kept.append(numbers)
        if len(kept) * max(len(names), LEAST_CELLS) > MOST_CELLS:
            raise ValueError(f"{file.name}: has more than {MOST_CELLS:,} cells")
    columns = np.array(kept).reshape(-1, len(names)).T  # [columns, rows]
    return {name: column for name, column in zip(names, columns, strict=True) if name}


def drop_from(rows: list[array[float]], place: int, updates: float) -> None:
    """Remove the rows of this update and later ones, which are the last."""
    while rows and rows[-1][place] >= updates:
        rows.pop()


def read_summary(file: Path) -> Json:
    """Read summary.json; empty if there is no such file, ValueError if it is damaged."""
    if not file.exists():
        return {}
    try:
        summary = parse_json(read_file(file, SMALL_FILE))
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None
    if not isinstance(summary, dict):
        raise ValueError(f"{file.name} is not a JSON object")
    for name in (*COUNTS, *SCORES):
        value = summary.get(name)
        least = 0 if name in COUNTS else -MOST_NUMBER
        if value is not None and not is_number(value, least):
            raise ValueError(f"{file.name}: {name}={shown(value)}: must be a number")
    return summary


def is_number(value: object, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= MOST_NUMBER


def export_logs(path: Path, run: RunLog, folder: Path) -> Path:
    """Write a small copy of a run's logs to a folder of the same name inside `folder`, and return its path."""
    target = folder / path.resolve().name
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / "config.yaml", run.config.dump().encode())
    if run.summary:
        write_atomically(target / "summary.json", (json.dumps(run.summary, indent=2) + "\n").encode())
    for file in path.glob(EVALUATIONS):
        write_atomically(target / file.name, read_file(file, SMALL_FILE))
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(run.metrics)
    writer.writerows([format_number(value) for value in row] for row in thinned(run))
    write_atomically(target / "metrics.csv", table.getvalue().encode())
    return target


def thinned(run: RunLog) -> list[list[float]]:
    """Choose at most MOST_ROWS rows, up to half of them with evaluations; dropped gradients keep their sum."""
    with_evaluation = ~np.isnan(run.column("evaluation_score")) | (run.column("resumed") > 0)
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
