"""How a job ends: exit codes, refusals that every rank agrees on, failures that end every rank."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from dba3c.config.messages import ConfigError
from dba3c.job.process import say, settle_streams

if TYPE_CHECKING:
    from mpi4py import MPI

    from dba3c.job.world import World

T = TypeVar("T")
EXIT_OK = 0
EXIT_ERROR = 1  # an exception on some rank; its traceback is printed
EXIT_BAD_INPUT = 2
EXIT_NOT_FINITE = 3  # training stopped by NaN or Inf gradients; the last good weights are saved
EXIT_NOT_SAVED = 4  # the last save failed
EXIT_LOST = 5  # a rank is dead, stopped or cut off; the others named it and left
EXIT_STOPPED = 75  # stopped by a signal and saved; rerun the same command to resume (EX_TEMPFAIL)
CODES = (EXIT_OK, EXIT_ERROR, EXIT_BAD_INPUT, EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_LOST, EXIT_STOPPED)
CODE_FILE = "DBA3C_CODE_FILE"  # environment: where `dba3c train --ranks` finds the code if mpirun loses it
ABORT_SECONDS = 5
FORESEEN_BY: list[Callable[[int], None]] = []  # what keeps the exit code, as a file of the run directory


def foresee(code: int) -> None:
    """Tell the exit code as soon as this rank knows it: a launcher may kill the rank, and make another code of it."""
    note_code(code)
    for keep in FORESEEN_BY:
        with suppress(Exception):
            keep(code)


def note_code(code: int) -> None:
    """Write the exit code down for a parent whose launcher may be killed together with the ranks."""
    with suppress(KeyError, OSError):
        Path(os.environ[CODE_FILE]).write_text(str(code), encoding="ascii")


def agreed(world: World, work: Callable[[], T]) -> T:
    """The result of `work`; if it is refused on any rank, every rank leaves, with one message from the whole job."""
    result, error = None, None
    try:
        result = work()
    except ConfigError as refusal:
        error = str(refusal)
    errors = world.comm.allgather(error)
    first = next((e for e in errors if e), None)
    if first is None:
        return cast(T, result)
    foresee(EXIT_BAD_INPUT)
    if world.rank == errors.index(first):
        say(f"dba3c: {first}")
    world.comm.Barrier()  # the message is out before a launcher sees the first exit code and kills the rest
    raise SystemExit(EXIT_BAD_INPUT) from ConfigError(first)  # for a program that would rather know than end


def fail(world: World, error: BaseException | None) -> None:
    """Print the traceback, then who failed, where and why in one line; the other ranks end, too."""
    foresee(EXIT_ERROR)
    lines = traceback.format_exception(error)
    place = "".join(f", {note}" for note in getattr(error, "__notes__", []))
    cause = f"{type(error).__name__}: {error}"
    say(f"{''.join(lines)}dba3c: rank {world.rank} on {world.host} failed{place}: {cause}")
    if world.size > 1 or threading.current_thread() is not threading.main_thread():
        abort(world.comm, EXIT_ERROR)


def abort(comm: MPI.Intracomm, code: int) -> None:
    """End all ranks; this one in any case, even if MPI cannot reach the others and never comes back."""
    note_code(code)
    signal.alarm(ABORT_SECONDS)  # the kernel ends us: no thread of ours could, as mpi4py holds the interpreter
    comm.Abort(code)


def leave(comm: MPI.Intracomm, code: int) -> NoReturn:
    """End without MPI_Finalize, which across hosts waits for ranks that have died; all survivors must come here."""
    comm.Barrier()  # whatever was sent has arrived
    settle_streams()
    os._exit(code)
