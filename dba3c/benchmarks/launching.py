"""Start ranks on this machine, say what machine it is, and show what is measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dba3c.config.messages import ConfigError
from dba3c.job.cores import processor
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_ERROR, EXIT_OK
from dba3c.job.launch import ALLOW_ROOT, mpirun
from dba3c.job.process import terminal
from dba3c.job.single_host import single_host
from dba3c.job.world import launched
from dba3c.types import Json

T = TypeVar("T")


class BenchError(Exception):
    """A benchmark could not be run; the message says why."""


def answer(name: str, work: Callable[[], None]) -> int:
    """Run a command; return its exit code, after one message if it was refused or failed."""
    try:
        work()
    except (ConfigError, BenchError) as error:
        print(f"dba3c {name}: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT if isinstance(error, ConfigError) else EXIT_ERROR
    return EXIT_OK


def cores() -> int:
    return len(os.sched_getaffinity(0))


def machine() -> Json:
    """Describe this machine, for every result."""
    return {"cpu": processor(), "cores": cores(), "system": platform.platform()}


def launcher(ranks: int, threads: int) -> list[str]:
    """Write mpirun's options for ranks that have `threads` cores each."""
    return ["-np", str(ranks), "--map-by", f"slot:PE={threads}", "--bind-to", "core"]


def run(
    ranks: int,
    module: str,
    arguments: list[str],
    threads: int = 1,
    show: bool = False,
    oversubscribe: bool = False,
    checkout: Path | None = None,
) -> None:
    """Run a module on ranks with cores of their own; show its output if asked to, or if it fails.

    It is a module of this package, or of the dba3c in another `checkout`.
    """
    binding = ["-np", str(ranks), "--oversubscribe"] if oversubscribe else launcher(ranks, threads)
    words = [mpirun(), *binding, sys.executable, "-m", module, *arguments]
    settings = dict(ALLOW_ROOT)
    if checkout:
        settings["PYTHONPATH"] = str(checkout)
    environment = single_host(os.environ, ranks) | settings
    result = subprocess.run(words, env=environment, cwd=checkout, capture_output=not show, text=True, check=False)
    if result.returncode:
        output = "" if show else f":\n{result.stdout}{result.stderr}"
        raise BenchError(f"{' '.join(words)} ended with code {result.returncode}{output}")


def result_of(ranks: int, module: str, arguments: Iterable[str], oversubscribe: bool = False, threads: int = 1) -> Json:
    """Run a module on ranks; return what rank 0 wrote to the file that is the module's last argument."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        run(ranks, module, [*arguments, str(file)], threads, oversubscribe=oversubscribe)
        result: Json = json.loads(file.read_text(encoding="utf-8"))
    return result


Bar = Progress  # rich's; a run's Progress is another thing


def open_bar(quiet: bool = False) -> Bar:
    """Make a bar on the terminal, or on stderr, that vanishes when it is done."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Bar(*columns, console=Console(file=terminal() or sys.stderr, quiet=quiet), transient=True)


@contextmanager
def stage(bar: Bar, description: str) -> Iterator[None]:
    """Name one stage of the bar's newest task, and advance by one after it; in a log file each stage is a line."""
    task = bar.task_ids[-1]
    bar.update(task, description=description)
    if not bar.console.is_terminal and not bar.console.quiet:
        number, total = int(bar.tasks[-1].completed) + 1, bar.tasks[-1].total
        print(
            f"{bar.get_time() - (bar.tasks[-1].start_time or 0):6.0f} s  {number} of {total:.0f}: {description}",
            file=bar.console.file,
            flush=True,
        )
    yield
    bar.advance(task)


def track(bar: Bar, items: Sequence[T], description: str) -> Iterator[T]:
    """Go through items, each a stage of a task of its own."""
    bar.add_task(description, total=len(items))
    for item in items:
        with stage(bar, description):
            yield item


def show(result: RenderableType) -> None:
    """Print a result: at a fixed width to a log file, or if a launcher forwards it to a terminal of unknown width."""
    if sys.stdout.isatty() and not launched():
        Console(highlight=False).print(result)
    else:
        Console(width=140, color_system=None, highlight=False).print(result)
