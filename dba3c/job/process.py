"""This process: its streams and messages, TensorFlow's threads, the terminal somebody looks at."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from dba3c.types import Say

OUTLETS: list[Say] = []  # where messages go besides stderr, as a run's log file
TERMINAL = "DBA3C_TERMINAL"  # environment: the terminal of `dba3c train --ranks`, which started mpirun
RANKS_OF_MPIRUN = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")  # environment, set by Open MPI and by MPICH
HIDDEN: list[int] = []  # the real stderr, while libraries write into another one


def say(text: str) -> None:
    """Write a message to stderr and to the other outlets; one that cannot be written is passed over."""
    with suppress(Exception):
        to_stderr(text)
    log(text)


def log(text: str) -> None:
    """Write a message to the other outlets than stderr."""
    for write in OUTLETS:
        with suppress(Exception):
            write(text)


def to_stderr(text: str) -> None:
    if HIDDEN:  # our own messages are not to be hidden with those of a library
        os.write(HIDDEN[-1], f"{text}\n".encode())
    else:
        print(text, file=sys.stderr, flush=True)


def ensure_home() -> None:
    """Set HOME if it is not: neither mpirun nor the ranks of Open MPI start without one."""
    os.environ.setdefault("HOME", tempfile.gettempdir())


def open_streams() -> None:
    """Open what the parent has closed, or the next file would become our stderr and get its messages."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def settle_streams() -> None:
    """Drop output that cannot be written: at the interpreter's end it would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def load_tensorflow(threads: int, say: Say = lambda _: None) -> None:
    """Import TensorFlow with as many threads as this rank may keep busy; it reads them from the environment."""
    if "tensorflow" in sys.modules:
        return
    say("loading TensorFlow")
    os.environ["OMP_NUM_THREADS"] = os.environ["TF_NUM_INTRAOP_THREADS"] = str(threads)
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"  # our graphs are chains: there is nothing to run side by side
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with quiet_stderr(), without("matplotlib"):  # which Keras would load: 0.7 s of 4.7 until the first update
        importlib.import_module("tensorflow")


@contextmanager
def without(package: str) -> Iterator[None]:
    """As if that package, unless it is loaded already, were not installed."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """Hide what C++ libraries print while they are imported; exceptions still come through."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    HIDDEN.append(saved)
    try:
        yield
    finally:
        HIDDEN.pop()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def terminal() -> TextIO | None:
    """The terminal that somebody looks at: our stderr, or that of the launcher which started us; None in a batch job.

    The launcher's is written to directly, as mpirun stops forwarding our output once Ctrl-C was pressed.
    """
    try:
        if sys.stderr.isatty():
            return sys.stderr
        path = os.environ.get(TERMINAL) or stderr_of_mpirun()
        return open(path, "w", encoding="utf-8") if path.startswith("/dev/pts/") else None
    except (OSError, ValueError):
        return None


def stderr_of_mpirun() -> str:
    """Name the stderr of the mpirun on this host that started us; empty if none did, as a shell's is not for us."""
    started = any(name in os.environ for name in RANKS_OF_MPIRUN)
    return os.readlink(f"/proc/{os.getppid()}/fd/2") if started else ""


def available_memory(file: Path = Path("/proc/meminfo")) -> int:
    """Return the bytes of this host that programs can still take without swapping."""
    figures = dict(line.split(":", 1) for line in file.read_text(encoding="ascii").splitlines())
    return int(figures["MemAvailable"].split()[0]) * 1024
