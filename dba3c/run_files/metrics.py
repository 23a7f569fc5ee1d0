"""What a run reports: live display, metrics.csv, TensorBoard events, summary.json; a null object on the other ranks."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
import tensorflow as tf

from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.run_files.display import Display
from dba3c.run_files.log_file import LogFile
from dba3c.run_files.progress import Progress
from dba3c.run_files.untrusted import parse_number, read_table
from dba3c.run_files.window import OnlineScore, Window
from dba3c.types import PARTS, Json, Say, Update

LATE_TOO_OFTEN = 0.5  # share of updates
REFRESH_SECONDS = 1.0  # of the live display
SHORTEST_GLANCE = 3.0  # seconds that it sums up at least: an algorithm may play and learn in turn for some seconds
COLUMNS = (
    "seconds", "updates", "steps", "frames", "steps_per_second", "points_per_second", "online_score",
    "online_game_steps", "evaluation_score", "evaluation_games", "policy_loss", "value_loss", "entropy",
    "gradient_norm", "lag", "max_lag", "skipped", "dropped", "rebuilt", "slowest_rank", "memory_mb",
    *(f"{part}_share" for part in PARTS),
)  # fmt: skip


class Metrics(Protocol):
    def update(self, update: Update, progress: Progress) -> None: ...
    def evaluated(self, games: int, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...
    def close(self, summary: Json | None) -> None: ...


class NullMetrics:
    """Reports nothing, on ranks that do not write."""

    def update(self, update: Update, progress: Progress) -> None: ...
    def evaluated(self, games: int, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...
    def close(self, summary: Json | None) -> None: ...


class RunMetrics:
    """Writes into the run directory and shows the display."""

    def __init__(
        self,
        run_dir: Path,
        config: Config,
        progress: Progress,
        hosts: list[str],
        frames_per_step: int,
        terminal: TextIO | None,
    ) -> None:
        self._run_dir = run_dir
        self._frames_per_step = frames_per_step
        self._hosts = hosts
        self._interval = config.train.log_every_seconds
        self._row = Window()
        self._shown = time.perf_counter()
        self._warned = False
        self._glance: dict[str, float] = {}  # what the display shows
        self._online = OnlineScore()
        self._log_file = LogFile(run_dir)
        self._display_works = True
        self._display = Display(config, hosts, frames_per_step, terminal)
        self._show(self._display.open)
        self._csv: Any = None
        self._tensorboard = tf.summary.create_noop_writer()
        with self._tolerating_failures():
            self._csv = open_csv(run_dir / "metrics.csv", progress.updates, self.say)
            self._tensorboard = tf.summary.create_file_writer(str(run_dir))

    def update(self, update: Update, progress: Progress) -> None:
        self._row.add(update)
        self._online.add(update)
        if self._row.age >= self._interval:
            self._write(progress, {})
        if time.perf_counter() - self._shown >= REFRESH_SECONDS:
            if self._row.age >= SHORTEST_GLANCE or not self._glance:
                self._glance = self._row.figures()
            self._show(lambda: self._display.show(self._glance | self._online.figures(), progress))
            self._shown = time.perf_counter()

    def evaluated(self, games: int, progress: Progress) -> None:
        self._write(progress, {"evaluation_score": progress.evaluation_score, "evaluation_games": games})

    def _write(self, progress: Progress, more: dict[str, float | None]) -> None:
        figures: dict[str, Any] = self._row.figures() | self._online.figures() | more
        counts = {"seconds": round(progress.seconds, 3), "updates": progress.updates, "steps": progress.steps}
        figures |= counts | {"skipped": progress.skipped, "frames": progress.steps * self._frames_per_step}
        figures["memory_mb"] = resident_mb()
        self._name_late_ranks()
        self._row = Window()
        with self._tolerating_failures():
            if self._csv is not None:
                self._csv.writerow([tidy(figures.get(name)) for name in COLUMNS])
            with self._tensorboard.as_default():
                for name in COLUMNS:
                    if figures.get(name) is not None:
                        tf.summary.scalar(name, figures[name], step=progress.steps)

    @contextmanager
    def _tolerating_failures(self) -> Iterator[None]:
        """Metrics that cannot be written do not end a training; the first failure is reported."""
        try:
            yield
        except (OSError, csv.Error, ValueError, tf.errors.OpError) as error:
            if not self._warned:
                self.say(f"metrics in {self._run_dir} cannot be written: {error}; training continues without them")
            self._warned = True

    def _name_late_ranks(self) -> None:
        """Ranks that were late in most updates of this row: something is wrong with them."""
        for rank in np.flatnonzero(self._row.late > LATE_TOO_OFTEN * self._row.updates):
            share = self._row.late[rank] / self._row.updates
            self.say(f"rank {rank} on {self._hosts[rank]} late in {share:.0%} of {self._row.updates} updates")

    def say(self, text: str) -> None:
        with suppress(OSError):  # a full disk is reported when it matters
            self._log_file.write(text)
        self._show(lambda: self._display.say(text))

    def _show(self, work: Callable[[], None]) -> None:
        """Use the display until it fails, as a terminal does that was closed; log.txt gets on without it."""
        if self._display_works:
            try:
                work()
            except (Exception, SystemExit) as error:  # rich leaves by SystemExit when a pipe breaks
                self._display_works = False
                self.say(f"the terminal cannot be written: {error}; training continues, messages are in log.txt")

    def close(self, summary: Json | None) -> None:
        self._show(self._display.close)
        with self._tolerating_failures():
            self._tensorboard.close()
        if summary is None:
            return
        text = json.dumps(summary | {"online_score": self._online.figures()["online_score"]}, indent=2)
        with self._tolerating_failures():
            write_atomically(self._run_dir / "summary.json", (text + "\n").encode())


def resident_mb() -> int:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def tidy(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def open_csv(path: Path, updates: int, say: Say = lambda _: None) -> Any:
    """A writer that appends to `path`, after dropping rows later than the checkpoint that is resumed."""
    if path.is_file() or not path.exists():  # a device, say, cannot be replaced
        write_atomically(path, rows_until(path, updates, say).encode())
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not hang us
    return csv.writer(open(descriptor, "a", newline="", buffering=1))


def rows_until(path: Path, updates: int, say: Say) -> str:
    """Return the rows up to an update, under the present columns; a damaged file is set aside."""
    kept = io.StringIO(newline="")
    writer = csv.writer(kept)
    writer.writerow(COLUMNS)
    try:
        table = read_table(path) if path.exists() else iter(())
        names = next(table, list(COLUMNS))
        place = names.index("updates")
        for row in table:
            if len(row) > place and parse_number(row[place]) <= updates:
                cells = dict(zip(names, row, strict=False))
                writer.writerow([cells.get(name, "") for name in COLUMNS])
    except ValueError as error:
        damaged = path.replace(path.with_name(f"{path.name}.damaged"))
        say(f"{path} is damaged: {error}; it is kept as {damaged.name}, and a new file continues from here")
    return kept.getvalue()
