"""This process: TensorFlow's threads, its standard error, the terminal somebody looks at."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def load_tensorflow(threads: int) -> None:
    """Import TensorFlow with as many threads as this rank may keep busy; it reads them from the environment."""
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
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def terminal() -> TextIO | None:
    """The terminal that somebody looks at: our stderr, or that of a local mpirun; None in a batch job.

    mpirun's terminal is written to directly, as mpirun stops forwarding our output once Ctrl-C was pressed.
    """
    if sys.stderr.isatty():
        return sys.stderr
    try:
        path = os.readlink(f"/proc/{os.getppid()}/fd/2")
        return open(path, "w", encoding="utf-8") if path.startswith("/dev/pts/") else None
    except OSError:
        return None
