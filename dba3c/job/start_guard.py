"""A guard over the start of a rank: MPI itself cannot say that another rank is stopped, or never comes.

Until the ranks' watchdogs can hear each other, a small child process waits for this rank. It must be a process: while
MPI starts, or a library is loaded from a slow disk, no thread of this one may get to run.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path

VARIABLE = "DBA3C_START_SECONDS"
START_SECONDS = 300.0  # a slow file system may take minutes to load TensorFlow for all ranks
LOOK_SECONDS = 1.0
PATIENCE = 10.0  # seconds of the start without a word
TASK_NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")  # set by launchers


def start_seconds() -> float:
    """How long the start may take; a value that is no number counts as not given."""
    try:
        return float(os.environ.get(VARIABLE, ""))
    except ValueError:
        return START_SECONDS


def task_number() -> str:
    """This rank's number as the launcher gave it, before MPI has started."""
    return next((os.environ[name] for name in TASK_NUMBERS if name in os.environ), "0")


class StartGuard:
    """Kills this process, with a message, unless it is released in time."""

    def __init__(self, seconds: float) -> None:
        reader, self._writer = os.pipe()
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._writer)
            try:
                watch(reader, parent, seconds)
            finally:
                os._exit(0)
        os.close(reader)
        os.set_inheritable(self._writer, False)

    def release(self) -> None:
        """Declare that the watchdog has taken over."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._child, signal.SIGKILL)  # it may be stopped, and would be waited for
                os.waitpid(self._child, 0)


def watch(reader: int, parent: int, seconds: float) -> None:
    """Run the child: wait for the release, or for the end of the parent, but not while the parent is stopped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1})
    waited = 0.0
    told = task_number() != "0"  # one rank says it for all
    while waited < seconds:
        if select.select([reader], [], [], LOOK_SECONDS)[0]:
            return
        waited += 0.0 if is_stopped(parent) else LOOK_SECONDS
        if waited >= PATIENCE and not told:
            told = True
            with suppress(OSError):
                tell(f"still starting after {waited:g} s: MPI waits for all ranks, or the file system is slow")
    try:
        tell(
            f"rank {task_number()} on {socket.gethostname()}: the ranks did not find each other within {seconds:g} s:"
            f" one of them is stopped, stuck or cut off; the job ends ({VARIABLE} sets the limit)"
        )
    finally:
        os.kill(parent, signal.SIGKILL)


def tell(text: str) -> None:
    os.write(2, f"dba3c: {text}\n".encode())


def is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False
