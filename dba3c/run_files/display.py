"""The progress display of rank 0: a live panel on a terminal, a line every few seconds in a log file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dba3c.config.schema import Config
from dba3c.run_files.progress import Progress
from dba3c.run_files.table import GROUPS, own_figures
from dba3c.timings import PARTS

DAY = 24 * 3600.0
MOST_DAYS = 100  # left, beyond which a number would only pretend to know
MOST_COLUMNS = 100  # width of the panel on a wide terminal; wider ones are harder to read


class Display:
    """A live panel on `terminal`, or lines on stderr if there is no terminal."""

    def __init__(self, config: Config, hosts: list[str], terminal: TextIO | None, numbers: Sequence[int] = ()) -> None:
        """`numbers` are the ranks' numbers when the job started, if others have failed since."""
        self._config = config
        self._hosts = hosts
        self._numbers = numbers or range(len(hosts))
        self._title = f"{config.env.game} · {len(hosts)} rank{'s' * (len(hosts) > 1)} × {config.env.n_sim} simulators"
        self._console = Console(file=terminal or sys.stderr, width=columns(terminal), highlight=False)
        self._live = Live(console=self._console, auto_refresh=False) if terminal else None
        self._next_line = 0.0

    def open(self) -> None:
        if self._live:
            self._live.start()

    def say(self, text: str) -> None:
        """Print a message above the panel, or as a line of its own."""
        self._console.print(text, markup=False, soft_wrap=True)

    def show(self, figures: dict[str, Any], progress: Progress) -> None:
        """Refresh the panel, or print a line if the last one is train.log_every_seconds old."""
        if self._live:
            self._live.update(self._panel(figures, progress), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self._config.train.log_every_seconds
            self.say(self._line(figures, progress))

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def _line(self, figures: dict[str, Any], progress: Progress) -> str:
        return "  ".join([
            f"{duration(progress.seconds)}",
            f"steps {progress.steps:,} ({self._fraction(progress):.1%})",
            f"updates {progress.updates:,}",
            self._pace(figures),
            self._scores(figures, progress),
            self._left(figures),
            self._slowest(figures),
        ])  # fmt: skip

    def _panel(self, figures: dict[str, Any], progress: Progress) -> Panel:
        bar = Table.grid(expand=True)
        bar.add_column(ratio=1)
        bar.add_column(justify="right")
        done = self._fraction(progress)
        text = f"  {done:.1%} of {self._config.train.total_steps:,} steps · {self._left(figures)}"
        bar.add_row(ProgressBar(total=1.0, completed=done), text)
        lines = [
            " · ".join(
                [
                    duration(progress.seconds),
                    f"step {progress.steps:,}",
                    f"update {progress.updates:,}",
                    self._pace(figures),
                ]
            ),
            self._scores(figures, progress),
            self._losses(figures),
            "time: "
            + " · ".join(
                f"{part} {figures[f'{part}_share']:.0%}" for part in PARTS if figures[f"{part}_share"] >= 0.005
            ),
            f"{self._slowest(figures)} · {self._ages(figures)}",
        ]
        return Panel(Group(bar, *(Text(line, no_wrap=True) for line in lines)), title=self._title, title_align="left")

    def _fraction(self, progress: Progress) -> float:
        return min(1.0, progress.steps / self._config.train.total_steps)

    def _pace(self, figures: dict[str, Any]) -> str:
        pace = figures["steps_per_second"]
        return "– steps/s" if pace is None else f"{pace:,.0f} steps/s"

    def _losses(self, figures: dict[str, Any]) -> str:
        """Show every figure that the algorithm's loss gives, its own ones too."""
        names = [*GROUPS["loss"], *(name for name in own_figures(figures) if name != "seconds_left")]
        shown = [f"{name.replace('_', ' ')} {figures[name]:.3g}" for name in names if name in figures]
        return " · ".join(shown) or "no figures of a loss"

    def _scores(self, figures: dict[str, Any], progress: Progress) -> str:
        online, evaluation = (score(value) for value in (figures["online_score"], progress.evaluation_score))
        return f"score online {online} · evaluation {evaluation} · target {score(self._config.target_score)}"

    def _left(self, figures: dict[str, Any]) -> str:
        seconds = figures["seconds_left"]
        return "time left –" if seconds is None else f"{rough_duration(seconds)} left"

    def _ages(self, figures: dict[str, Any]) -> str:
        """Show how old the weights were that played, and those that a gradient was computed with."""
        stale = f" · staleness {figures['staleness']:.1f}" if "staleness" in figures else ""
        return f"lag {figures.get('lag', 0.0):.1f} updates{stale}"

    def _slowest(self, figures: dict[str, Any]) -> str:
        rank = figures["slowest_rank"]
        dropped = f" · {figures['dropped']} gradients dropped" if figures["dropped"] else ""
        return f"slowest rank {self._numbers[rank]} ({self._hosts[rank]}), waiting {figures['wait_share']:.0%}{dropped}"


def columns(terminal: TextIO | None) -> int | None:
    """Return the width of a panel that fits on the terminal; None without a terminal."""
    if terminal is None:
        return None
    try:
        return min(MOST_COLUMNS, os.get_terminal_size(terminal.fileno()).columns or MOST_COLUMNS)
    except (OSError, ValueError):  # it was closed
        return MOST_COLUMNS


def duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def rough_duration(seconds: float) -> str:
    """Format a duration that is an estimate: nobody needs the seconds of a week."""
    if seconds < 2 * DAY:
        return duration(seconds)
    return f"{seconds / DAY:.0f} days" if seconds < MOST_DAYS * DAY else f"more than {MOST_DAYS} days"


def score(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"
