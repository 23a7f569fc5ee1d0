"""What the launcher gave us: ranks, cores, threads, signals. Nothing here imports TensorFlow."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO, TypeVar, cast

from dba3c import cores
from dba3c.config import ConfigError
from dba3c.cores import Place

T = TypeVar("T")

EXIT_OK = 0
EXIT_ERROR = 1  # an exception on some rank; its traceback is printed
EXIT_BAD_INPUT = 2
EXIT_NOT_FINITE = 3  # training stopped by NaN or Inf gradients; the last good weights are saved
EXIT_NOT_SAVED = 4  # the last save failed
EXIT_LOST = 5  # a rank is dead, stopped or cut off; the others named it and left
EXIT_STOPPED = 75  # stopped by a signal and saved; the same command goes on (EX_TEMPFAIL)

TASK_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")  # what launchers tell their tasks
TASK_NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
SINGLETONS = (
    "dba3c: {name}={tasks}, but MPI found only 1 rank: the launcher and the MPI library do not speak the same PMI;"
    " use srun --mpi=pmix (srun --mpi=list tells what there is), or mpirun inside the allocation"
)
ABORT_SECONDS = 5
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class World(NamedTuple):
    """This rank's place in the job."""

    comm: Any  # mpi4py communicator
    rank: int
    size: int
    host: str
    threads: int  # that this rank may keep busy
    places: list[Place]  # of every rank
    started: float  # time.monotonic()

    @property
    def hosts(self) -> list[str]:
        """Of every rank."""
        return [place.host for place in self.places]

    @property
    def cores(self) -> int:
        """Of the whole job."""
        return len({(place.host, core) for place in self.places for core in place.cores})


def start() -> World:
    """Start MPI and divide the cores among the ranks."""
    started = time.monotonic()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        sys.exit(
            f"dba3c: no MPI library was found ({error});"
            " install one with pip install 'dba3c[mpi]', or load your site's MPI module"
        )
    comm = MPI.COMM_WORLD
    refuse_singletons(comm.size)
    unname_shared_memory(comm.Split_type(MPI.COMM_TYPE_SHARED))
    host = socket.gethostname()
    places = comm.allgather(cores.place(host))
    threads = cores.threads_for(cores.core_shares(places)[comm.rank])
    return World(comm, comm.rank, comm.size, host, threads, places, started)


def launched() -> bool:
    """Some launcher started this process as one of its tasks."""
    return any(name in os.environ for name in TASK_COUNTS)


def refuse_singletons(size: int) -> None:
    """Leave if a launcher started several tasks that do not find each other: each would train alone, unnoticed."""
    for name in TASK_COUNTS:
        tasks = os.environ.get(name, "")
        if size == 1 and tasks.isdigit() and int(tasks) > 1:
            if all(os.environ.get(number, "0") == "0" for number in TASK_NUMBERS):
                print(SINGLETONS.format(name=name, tasks=tasks), file=sys.stderr, flush=True)
            raise SystemExit(EXIT_BAD_INPUT)


def unname_shared_memory(host: Any) -> None:
    """Take away the names of the memory that MPI shares among the ranks of a host.

    Once every rank has it mapped nobody needs them, and without names it is freed when the ranks end, even by SIGKILL.
    """
    host.alltoall([None] * host.size)  # maps what would be mapped with the first message
    host.Barrier()
    maps = Path("/proc/self/maps")  # Linux
    for line in maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []:
        path = line[line.find("/") :] if "/" in line else ""
        if path.startswith(("/dev/shm/sm_segment", "/dev/shm/mpich_shm")) and not path.endswith("(deleted)"):
            Path(path).unlink(missing_ok=True)
    host.Free()


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
    if world.rank == errors.index(first):
        print(f"dba3c: {first}", file=sys.stderr, flush=True)
    world.comm.Barrier()  # the message is out before a launcher sees the first exit code and kills the rest
    raise SystemExit(EXIT_BAD_INPUT)


def job(body: Callable[[World], int]) -> int:
    """Run a program on every rank; an exception on one, in any of its threads, ends the whole job."""
    world = start()
    threading.excepthook = lambda failure: fail(world, failure.exc_value)
    try:
        return body(world)
    except Exception as error:
        fail(world, error)
        return EXIT_ERROR


def fail(world: World, error: BaseException | None) -> None:
    """Print the traceback, then who failed, where and why in one line; the other ranks end, too."""
    lines = traceback.format_exception(error)
    place = "".join(f", {note}" for note in getattr(error, "__notes__", []))
    cause = f"{type(error).__name__}: {error}"
    print(
        f"{''.join(lines)}dba3c: rank {world.rank} on {world.host} failed{place}: {cause}", file=sys.stderr, flush=True
    )
    if world.size > 1 or threading.current_thread() is not threading.main_thread():
        abort(world.comm, EXIT_ERROR)


def abort(comm: Any, code: int) -> None:
    """End all ranks; this one in any case, even if MPI cannot reach the others and never comes back."""
    signal.alarm(ABORT_SECONDS)  # the kernel ends us: no thread of ours could, as mpi4py holds the interpreter
    comm.Abort(code)


def leave(comm: Any, code: int) -> NoReturn:
    """End without MPI_Finalize, which across hosts waits for ranks that have died; all survivors must come here."""
    comm.Barrier()  # whatever was sent has arrived
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class StopSignal:
    """True once this rank was asked to stop; a second signal, a second later or more, leaves at once.

    `at_once` is called from a thread of its own as soon as a signal arrives, even while the main thread is inside a
    library: mpirun kills its ranks a quarter of a second after it passed on Ctrl-C.
    """

    def __init__(self, at_once: Callable[[], None] | None = None) -> None:
        self._received: float | None = None
        if at_once is not None:
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            signal.set_wakeup_fd(writer)
            threading.Thread(target=self._watch, args=(reader, at_once), daemon=True, name="signals").start()
        for number in STOP_SIGNALS:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._received is not None and now - self._received > 1:
            os._exit(128 + number)
        self._received = self._received or now

    def _watch(self, reader: int, at_once: Callable[[], None]) -> None:
        while os.read(reader, 1)[0] not in STOP_SIGNALS:
            pass
        at_once()

    def __bool__(self) -> bool:
        return self._received is not None


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
