"""Groups of runs that differ only in their seed, and the band that their curves span."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np

from dba3c.config.schema import Config
from dba3c.run_files.logs import RunLog
from dba3c.types import Array

PACE_SECONDS = 60.0


class Group(NamedTuple):
    """Runs whose configurations are the same but for train.seed."""

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


def grouped(runs: list[RunLog]) -> list[Group]:
    """Group the runs that differ only in their seed, and name each group."""
    groups: dict[str, list[RunLog]] = {}
    for run in runs:
        same = run.config.model_copy(update={"train": run.config.train.model_copy(update={"seed": 0})})
        groups.setdefault(same.dump(), []).append(run)
    names = [short_name(members) for members in groups.values()]
    if len(set(names)) < len(names):
        names = [full_name(members) for members in groups.values()]
    return [Group(name, members) for name, members in zip(names, groups.values(), strict=True)]


def short_name(runs: list[RunLog]) -> str:
    """Name a group by what its runs' names begin with: pong (2 runs) for pong-0 and pong-1."""
    letters = takewhile(lambda same: len(set(same)) == 1, zip(*(run.name for run in runs), strict=False))
    common = "".join(same[0] for same in letters).rstrip("-_./ ")
    return f"{common} ({len(runs)} runs)" if common and len(runs) > 1 else full_name(runs)


def full_name(runs: list[RunLog]) -> str:
    """Name a group by its first and its last run."""
    return f"{runs[0].name} … {runs[-1].name} ({len(runs)} runs)" if len(runs) > 1 else runs[0].name


def differing(groups: list[Group]) -> dict[str, list[object]]:
    """Find the keys whose values differ between groups, and each group's value."""
    flat = [group.config.flat() for group in groups]
    names = [name for name in flat[0] if name != "train.seed" and not name.startswith("targets.")] if flat else []
    return {
        name: [values.get(name) for values in flat]
        for name in names
        if any(values.get(name) != flat[0][name] for values in flat)
    }


class Band(NamedTuple):
    """Mean, least and greatest of several curves over the same x."""

    x: Array
    mean: Array
    low: Array
    high: Array


def curve(run: RunLog, x: str, y: str) -> tuple[Array, Array]:
    """Return x and y of the rows that have both; x is a column of metrics.csv, or minutes."""
    across = run.column("seconds") / 60 if x == "minutes" else run.column(x)
    up = run.column(y)
    known = ~np.isnan(across) & ~np.isnan(up)
    return across[known], up[known]


def pace_curve(run: RunLog) -> tuple[Array, Array]:
    """Return minutes and steps/s, over stretches long enough for many segments: PPO plays and learns in turn."""
    seconds, steps = curve(run, "seconds", "steps")
    if len(seconds) < 2:
        return seconds[:0], steps[:0]
    places = [0]
    for place, now in enumerate(seconds):
        if now - seconds[places[-1]] >= max(PACE_SECONDS, seconds[-1] / 100):
            places.append(place)
    if len(places) == 1:  # a short run
        places.append(len(seconds) - 1)
    lasted = np.diff(seconds[places])
    return seconds[places][1:] / 60, np.diff(steps[places]) / np.where(lasted > 0, lasted, np.inf)


def resumes(run: RunLog, x: str) -> list[float]:
    """Return where a run was resumed: its first rows after that, in steps or minutes."""
    across, marks = curve(run, x, "resumed")
    found: list[float] = across[marks > 0].tolist()
    return found


def band(curves: list[tuple[Array, Array]], points: int = 400) -> Band | None:
    """Interpolate the curves where all of them have values; None if there is no such range."""
    if not curves or any(len(x) == 0 for x, _ in curves):
        return None
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if first > last:
        return None
    x = np.linspace(first, last, points)
    y = np.stack([np.interp(x, *one) for one in curves])
    return Band(x, y.mean(axis=0), y.min(axis=0), y.max(axis=0))
