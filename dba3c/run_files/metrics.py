"""What a run reports: live display, metrics.csv, TensorBoard events, summary.json; a null object on the other ranks."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
import tensorflow as tf

from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.run_files.directory import LogFile
from dba3c.run_files.display import Display
from dba3c.run_files.progress import Progress
from dba3c.run_files.table import Table, tag
from dba3c.run_files.window import OnlineScore, SegmentPace, TimeLeft, Window
from dba3c.types import Json, Update

LATE_TOO_OFTEN = 0.5  # share of updates
REFRESH_SECONDS = 1.0  # of the live display
SHORTEST_GLANCE = 3.0  # seconds that it sums up at least: an algorithm may play and learn in turn for some seconds


class Metrics(Protocol):
    def open_files(self, progress: Progress) -> None: ...
    def update(self, update: Update, progress: Progress) -> None: ...
    def evaluated(self, games: int, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...
    def close(self, summary: Json | None) -> None: ...


class NullMetrics:
    """Reports nothing, on ranks that do not write."""

    def open_files(self, progress: Progress) -> None: ...
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
        numbers: Sequence[int] = (),
    ) -> None:
        """`numbers` are the ranks' numbers when the job started, if others have failed since."""
        self._run_dir = run_dir
        self._config = config
        self._frames_per_step = frames_per_step
        self._hosts = hosts
        self._numbers = numbers or range(len(hosts))
        self._interval = config.train.log_every_seconds
        self._progress = progress
        self._row = Window()
        self._segments = SegmentPace()
        self._time_left = TimeLeft(config.train.total_steps)
        self._resumed = progress.updates > 0  # until the first row says so
        self._shown = time.perf_counter()
        self._warned = False
        self._glance: dict[str, Any] = {}  # what the display shows
        self._online = OnlineScore()
        self._log_file = LogFile(run_dir)
        self._display_works = True
        self._display = Display(config, hosts, terminal, numbers)
        self._show(self._display.open)
        self._csv: Table | None = None
        self._tensorboard = tf.summary.create_noop_writer()
        self.open_files(progress)

    def open_files(self, progress: Progress) -> None:
        """Open metrics.csv and TensorBoard's events, at the start and when they were removed."""
        with self._tolerating_failures():
            self._tensorboard.close()
        with self._tolerating_failures():
            self._csv = Table(self._run_dir / "metrics.csv", progress.updates, self.say)
            self._tensorboard = tf.summary.create_file_writer(str(self._run_dir))
            self._write_hparams(self._config)

    def update(self, update: Update, progress: Progress) -> None:
        now = time.perf_counter()
        self._progress = progress
        self._row.add(update)
        self._segments.add(update, now)
        self._online.add(update)
        left = self._time_left.seconds(progress.steps, now)
        if self._row.age >= self._interval:
            self._write(progress, {})
        if now - self._shown >= REFRESH_SECONDS:
            if self._row.age >= SHORTEST_GLANCE or not self._glance:
                self._glance = self._row.figures()
            pace = {"steps_per_second": self._segments.value, "seconds_left": left}
            self._show(lambda: self._display.show(self._glance | self._online.figures() | pace, progress))
            self._shown = now

    def evaluated(self, games: int, progress: Progress) -> None:
        score, cut = progress.evaluation_score, progress.evaluation_cut
        self._write(progress, {"evaluation_score": score, "evaluation_games": games, "evaluation_cut": cut})
        self._segments.interrupt()

    def _write(self, progress: Progress, more: dict[str, float | None]) -> None:
        self._glance = self._row.figures()
        figures: dict[str, Any] = self._glance | self._online.figures() | more
        counts = {"seconds": round(progress.seconds, 3), "updates": progress.updates, "steps": progress.steps}
        figures |= counts | {"skipped": progress.skipped, "frames": progress.steps * self._frames_per_step}
        figures |= {"memory_mb": resident_mb(), "steps_per_second": self._segments.value}
        figures["slowest_rank"] = self._numbers[figures["slowest_rank"]]
        if self._resumed:
            figures["resumed"] = 1
            self._resumed = False
        self._segments.renew()
        self._name_late_ranks()
        self._row = Window()
        with self._tolerating_failures():
            if self._csv is not None:
                self._csv.write(figures)
            with self._tensorboard.as_default():
                for name, value in figures.items():
                    if value is not None and name != "steps":  # those are the axis
                        tf.summary.scalar(tag(name), value, step=progress.steps)

    def _write_hparams(self, config: Config) -> None:
        """Let TensorBoard compare runs by their settings."""
        from tensorboard.plugins.hparams import api

        values = {name: plain(value) for name, value in config.flat().items() if not name.startswith("targets.")}
        with self._tensorboard.as_default():
            api.hparams(values, trial_id=self._run_dir.name)

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
        for rank in np.flatnonzero(self._row.late > LATE_TOO_OFTEN * self._row.updates).tolist():
            share = self._row.late[rank] / self._row.updates
            name = f"rank {self._numbers[rank]} on {self._hosts[rank]}"
            self.say(f"{name} late in {share:.0%} of {self._row.updates} updates")

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
                self.say(f"cannot write to the terminal: {error}; training continues, messages go to log.txt")

    def close(self, summary: Json | None) -> None:
        """Write a last row of what no other row has, however short the run was, and the summary."""
        if self._row.updates:
            self._write(self._progress, {})
        self._show(self._display.close)
        with self._tolerating_failures():
            self._tensorboard.close()
        if summary is None:
            return
        text = json.dumps(summary | {"online_score": self._online.figures()["online_score"]}, indent=2)
        with self._tolerating_failures():
            write_atomically(self._run_dir / "summary.json", (text + "\n").encode())


def plain(value: Any) -> Any:
    """Write a list as text, as TensorBoard knows numbers and words only."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def resident_mb() -> int:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
