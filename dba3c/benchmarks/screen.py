"""What is on the screen while a measurement runs, and when it is over."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dba3c.job.process import terminal
from dba3c.job.world import launched

Bar = Progress  # rich's; a run's Progress is another thing


def open_bar(quiet: bool = False) -> Bar:
    """Make a bar on the terminal, or on stderr, that vanishes when it is done."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Bar(*columns, console=Console(file=terminal() or sys.stderr, quiet=quiet), transient=True)


@contextmanager
def stage(bar: Bar, description: str) -> Iterator[None]:
    """Name one stage of the bar's newest task, and advance by one after it."""
    task = bar.task_ids[-1]
    bar.update(task, description=description)
    yield
    bar.advance(task)


def show(result: RenderableType) -> None:
    """Print a result: at a fixed width to a log file, or if a launcher forwards it to a terminal of unknown width."""
    if sys.stdout.isatty() and not launched():
        Console(highlight=False).print(result)
    else:
        Console(width=140, color_system=None, highlight=False).print(result)
