"""metrics.csv: its columns, and how it is written and continued."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from dba3c.run_files import write_atomically
from dba3c.run_files.untrusted import parse_number, read_table
from dba3c.run_files.window import CREW
from dba3c.timings import PARTS
from dba3c.types import Say

Figures = Mapping[str, float | int | None]

GROUPS = {  # as TensorBoard shows the columns; the names are the same
    "score": ("online_score", "online_game_steps", "evaluation_score", "evaluation_games", "evaluation_cut"),
    "loss": ("policy_loss", "value_loss", "entropy", "gradient_norm"),  # and every other figure of a loss
    "time": ("seconds", "steps_per_second", "points_per_second", *(f"{part}_share" for part in PARTS)),
    "comm": ("lag", "max_lag", "staleness", "dropped", "slowest_rank"),
    "actor": CREW,
    "run": ("updates", "frames", "skipped", "rebuilt", "memory_mb", "resumed"),
}
COLUMNS = (
    "seconds", "updates", "steps", "frames", "steps_per_second", "points_per_second", "online_score",
    "online_game_steps", "evaluation_score", "evaluation_games", "evaluation_cut", "policy_loss", "value_loss",
    "entropy", "gradient_norm", "lag", "max_lag", "staleness", "skipped", "dropped", "rebuilt", "slowest_rank",
    "memory_mb", *(f"{part}_share" for part in PARTS), *CREW, "resumed",
)  # fmt: skip
MOST_OWN = 100  # columns for figures of an own loss; what reads the file takes 200 in all


def tag(name: str) -> str:
    """Name a figure for TensorBoard, which groups by what stands before the slash."""
    return next((f"{group}/{name}" for group, names in GROUPS.items() if name in names), f"loss/{name}")


def own_figures(figures: Figures) -> list[str]:
    """Return the names of figures that only this loss has."""
    return [name for name in figures if name not in COLUMNS][:MOST_OWN]


class Table:
    """Appends rows to metrics.csv; a figure that comes for the first time gets a column behind the others."""

    def __init__(self, path: Path, updates: float, say: Say = lambda _: None) -> None:
        """Drop rows later than `updates`, those of the checkpoint that is resumed."""
        self._path = path
        self._say = say
        self._columns: list[str] = list(COLUMNS)
        self._file = self._reopen(updates)

    def write(self, figures: Figures) -> None:
        new = [name for name in own_figures(figures) if name not in self._columns]
        if new:
            self._columns += new
            self._file.close()
            self._file = self._reopen(float("inf"))
        csv.writer(self._file).writerow([tidy(figures.get(name)) for name in self._columns])

    def _reopen(self, updates: float) -> TextIO:
        if self._path.is_file() or not self._path.exists():  # a device, say, cannot be replaced
            write_atomically(self._path, self._rows_until(updates).encode())
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not hang us
        return open(os.open(self._path, flags), "a", newline="", buffering=1, encoding="utf-8")

    def _rows_until(self, updates: float) -> str:
        """Return the rows up to an update, under the present columns and own ones; a damaged file is set aside."""
        rows: list[dict[str, str]] = []
        try:
            table = read_table(self._path) if self._path.exists() else iter(())
            names = next(table, list(COLUMNS))
            place = names.index("updates")
            for row in table:
                if len(row) > place and parse_number(row[place]) <= updates:
                    rows.append(dict(zip(names, row, strict=False)))
            known = dict.fromkeys(self._columns)
            self._columns += [name for name in own_figures(dict.fromkeys(names)) if name and name not in known]
        except ValueError as error:
            damaged = self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
            self._say(
                f"{self._path} is damaged: {error}; it is kept as {damaged.name}, and a new file continues from here"
            )
        kept = io.StringIO(newline="")
        csv.writer(kept).writerow(self._columns)
        csv.writer(kept).writerows([row.get(name, "") for name in self._columns] for row in rows)
        return kept.getvalue()


def tidy(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
