"""Runs that differ only in their seed, as one group; their curves as one band."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from dba3c.config.schema import Config
from dba3c.run_files.logs import RunLog
from dba3c.types import Array


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
