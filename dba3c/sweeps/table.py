"""What a sweep shows: a live table on a terminal, a line for each change elsewhere, and the failures at the end."""

from __future__ import annotations

import time
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dba3c.config.messages import one_line
from dba3c.reporting import status
from dba3c.reporting.tables import NOTHING
from dba3c.sweeps.plan import Training
from dba3c.sweeps.queue import FAILED, FINISHED, RUNNING, STOPPED, WAITING, Queue

REFRESH_SECONDS = 2.0
SHOWN = ("steps", "done", "score", "steps/s", "time left")  # columns of dba3c status
COLOURS = {RUNNING: "green", FAILED: "red", STOPPED: "yellow", WAITING: "dim"}


class SweepTable:
    """Follows a queue."""

    def __init__(self, trainings: list[Training], queue: Queue, console: Console) -> None:
        self._trainings = trainings
        self._queue = queue
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._states = dict(queue.states)
        self._cells: dict[str, list[str]] = {}
        self._next = 0.0

    def __enter__(self) -> Self:
        done = sum(state == FINISHED for state in self._states.values())
        self._say(f"{len(self._trainings)} trainings, {done} of them finished before")
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._next = 0.0
        self.refresh()
        if self._live:
            self._live.stop()
        for failure in self._queue.failures:
            self._say(
                f"{failure.training.name}: exit code {failure.code}: {one_line(failure.last_line)}; {failure.log}"
            )
        count = {
            state: list(self._queue.states.values()).count(state) for state in (FINISHED, FAILED, STOPPED, WAITING)
        }
        self._say(", ".join(f"{number} {state}" for state, number in count.items() if number))

    def refresh(self) -> None:
        """Show what has changed; the runs' files are read every REFRESH_SECONDS."""
        for training in self._trainings:
            state = self._queue.states[training.name]
            if state != self._states[training.name]:
                self._states[training.name] = state
                self._next = 0.0
                if self._live is None:
                    self._say(f"{training.name}: {state}{self._score(training) if state == FINISHED else ''}")
        if self._live and time.monotonic() >= self._next:
            self._live.update(self._table(), refresh=True)
            self._next = time.monotonic() + REFRESH_SECONDS

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _score(self, training: Training) -> str:
        score = self._row(training)[SHOWN.index("score")]
        return "" if score == NOTHING else f", score {score}"

    def _table(self) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("run", "state", *SHOWN):
            table.add_column(name, justify="right" if name in SHOWN else "left", no_wrap=True)
        for training in self._trainings:
            state = self._states[training.name]
            table.add_row(training.name, Text(state, style=COLOURS.get(state, "")), *self._row(training))
        return table

    def _row(self, training: Training) -> list[str]:
        """Read a run's figures; those of a training that has ended stay as they are."""
        ended = self._states[training.name] not in (RUNNING, WAITING)
        if ended and training.name in self._cells:
            return self._cells[training.name]
        cells = [NOTHING] * len(SHOWN)
        if (training.run_dir / "config.yaml").is_file():
            row = dict(zip(status.HEAD, status.row(status.look_at(training.run_dir, training.name)), strict=True))
            cells = [row[name] for name in SHOWN]
        if ended:
            self._cells[training.name] = cells
        return cells
