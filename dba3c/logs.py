"""What a run left: config.yaml, metrics.csv and summary.json, read without TensorFlow."""

from __future__ import annotations

import csv
import json
import math
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dba3c.config import ConfigError, parse
from dba3c.sections import Config
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


class Group(NamedTuple):
    """Runs whose configurations differ in nothing but train.seed."""

    name: str
    runs: list[RunLog]

    @property
    def config(self) -> Config:
        return self.runs[0].config

    @property
    def game(self) -> str:
        return self.config.env.game

    @property
    def seeds(self) -> list[int]:
        return [run.config.train.seed for run in self.runs]


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


def grouped(runs: list[RunLog]) -> list[Group]:
    """Runs that differ only in their seed, together."""
    groups: dict[str, list[RunLog]] = {}
    for run in runs:
        same = run.config.model_copy(update={"train": run.config.train.model_copy(update={"seed": 0})})
        groups.setdefault(same.dump(), []).append(run)
    names = [short_name(members) for members in groups.values()]
    if len(set(names)) < len(names):
        names = [full_name(members) for members in groups.values()]
    return [Group(name, members) for name, members in zip(names, groups.values(), strict=True)]


def short_name(runs: list[RunLog]) -> str:
    """What the names of the runs have in common: of pong-0 and pong-1, pong."""
    letters = takewhile(lambda same: len(set(same)) == 1, zip(*(run.name for run in runs), strict=False))
    common = "".join(same[0] for same in letters).rstrip("-_./ ")
    return f"{common} ({len(runs)} runs)" if common and len(runs) > 1 else full_name(runs)


def full_name(runs: list[RunLog]) -> str:
    return f"{runs[0].name} … {runs[-1].name} ({len(runs)} runs)" if len(runs) > 1 else runs[0].name


def differing(groups: list[Group]) -> dict[str, list[Any]]:
    """The keys that are not the same in all groups, and each group's value."""
    flat = [group.config.flat() for group in groups]
    names = [name for name in flat[0] if name != "train.seed" and not name.startswith("targets.")] if flat else []
    return {
        name: [values.get(name) for values in flat]
        for name in names
        if any(values.get(name) != flat[0][name] for values in flat)
    }


class Band(NamedTuple):
    """Several curves as one: their mean, and how far they lie apart."""

    x: Array
    mean: Array
    low: Array
    high: Array


def curve(run: RunLog, x: str, y: str) -> tuple[Array, Array]:
    """The rows that have a value; x is a column, or minutes."""
    across = run.column("seconds") / 60 if x == "minutes" else run.column(x)
    up = run.column(y)
    there = ~np.isnan(across) & ~np.isnan(up)
    return across[there], up[there]


def band(curves: list[tuple[Array, Array]], points: int = 400) -> Band | None:
    """Mean, least and greatest where all curves have values; None if they nowhere all have."""
    if not curves or any(len(x) == 0 for x, _ in curves):
        return None
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if first > last:
        return None
    x = np.linspace(first, last, points)
    y = np.stack([np.interp(x, *one) for one in curves])
    return Band(x, y.mean(axis=0), y.min(axis=0), y.max(axis=0))
