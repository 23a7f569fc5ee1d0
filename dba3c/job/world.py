"""This rank's place among the ranks of the job: starting MPI, dividing the cores."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dba3c.job import cores
from dba3c.job.cores import Place
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_ERROR, EXIT_STOPPED, abort, fail, foresee, note_code
from dba3c.job.process import ensure_home, log, open_streams, say, settle_streams, to_stderr
from dba3c.job.signals import StopSignal
from dba3c.job.start_guard import TASK_NUMBERS, StartGuard, start_seconds, task_number

if TYPE_CHECKING:
    from mpi4py import MPI

TASK_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")  # set by launchers
SINGLETONS = (
    "dba3c: {name}={tasks}, but MPI found only 1 rank: the launcher and the MPI library do not speak the same PMI;"
    " use srun --mpi=pmix (srun --mpi=list shows what there is), or mpirun inside the allocation"
)
UNREACHABLE = (
    "dba3c: MPI cannot reach the other ranks ({error}); if the nodes have several networks, name one that all of them"
    " share, with NETWORK for the scripts in slurm/ or OMPI_MCA_btl_tcp_if_include"
)
END_SECONDS = 60  # for MPI_Finalize, before the kernel ends the process


class World(NamedTuple):
    """This rank's place in the job."""

    comm: MPI.Intracomm
    rank: int
    size: int
    host: str
    threads: int  # that this rank may keep busy
    places: list[Place]  # of every rank
    started: float  # time.monotonic()
    numbers: tuple[int, ...]  # of every rank when the job started, which it keeps when others fail
    guard: StartGuard | None = None  # over the start, until a watchdog takes over

    @property
    def hosts(self) -> list[str]:
        """Of every rank."""
        return [place.host for place in self.places]

    @property
    def names(self) -> list[str]:
        """Of every rank."""
        return [f"rank {number} on {host}" for number, host in zip(self.numbers, self.hosts, strict=True)]

    def phase(self, what: str) -> None:
        """Say what comes next while the job starts, once for all ranks, and how long the start has taken so far."""
        if self.rank == 0:
            say(start_line(self.started, what))

    def split(self, inside: bool) -> MPI.Intracomm:
        """Make a communicator of the ranks that say the same, in their order; all ranks must take part."""
        from mpi4py import MPI  # started long ago

        return MPI.Intracomm(self.comm.Split(int(inside), self.rank))

    @property
    def cores(self) -> int:
        """Of the whole job."""
        return len({(place.host, core) for place in self.places for core in place.cores})


def mpi_library() -> str:
    """Return the name and version of the MPI library, without starting it; for a process that will not start it."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return f"none was found ({error})"
    return MPI.Get_library_version().splitlines()[0].split(", package")[0].strip("\0 ")


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
    try:
        unname_shared_memory(MPI.Intracomm(comm.Split_type(MPI.COMM_TYPE_SHARED)))  # the first message between ranks
    except MPI.Exception as error:
        time.sleep(1.0 if comm.rank else 0.0)  # the launcher may end all ranks as soon as one leaves
        sys.exit(EXIT_ERROR if comm.rank else UNREACHABLE.format(error=error))
    host = socket.gethostname()
    places = comm.allgather(cores.place(host))
    threads = cores.threads_for(cores.core_shares(places)[comm.rank])
    return World(comm, comm.rank, comm.size, host, threads, places, started, tuple(range(comm.size)))


def start_line(started: float, what: str) -> str:
    """Format a phase of the start, which began at `started`."""
    return f"{time.monotonic() - started:5.1f} s  {what}"


def launched() -> bool:
    """Some launcher started this process as one of its tasks."""
    return any(name in os.environ for name in TASK_COUNTS)


def refuse_singletons(size: int) -> None:
    """Leave if a launcher started several tasks that do not find each other: each would train alone, unnoticed."""
    for name in TASK_COUNTS:
        tasks = os.environ.get(name, "")
        if size == 1 and tasks.isdigit() and int(tasks) > 1:
            if all(os.environ.get(number, "0") == "0" for number in TASK_NUMBERS):
                say(SINGLETONS.format(name=name, tasks=tasks))
            raise SystemExit(EXIT_BAD_INPUT)


def unname_shared_memory(host: MPI.Intracomm) -> None:
    """Take away the names of the memory that MPI shares among the ranks of a host.

    Once every rank has mapped it the names are of no use; without them it is freed when the ranks end, even by SIGKILL.
    """
    host.alltoall([None] * host.size)  # maps what would be mapped with the first message
    host.Barrier()
    maps = Path("/proc/self/maps")  # Linux
    for line in maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []:
        path = line[line.find("/") :] if "/" in line else ""
        if path.startswith(("/dev/shm/sm_segment", "/dev/shm/mpich_shm")) and not path.endswith("(deleted)"):
            Path(path).unlink(missing_ok=True)
    host.Free()


def run_job(body: Callable[[World], int], watched: bool = False) -> int:
    """Run a program on every rank; an exception on one, in any of its threads, ends the whole job.

    A `watched` program starts a watchdog and then releases the guard over the start; for others this does.
    """
    open_streams()
    ensure_home()
    alone = StopSignal(lambda number: end_start(number, None))
    guard = StartGuard(start_seconds())
    world = start()._replace(guard=guard)
    stop = StopSignal(lambda number: end_start(number, world))
    threading.excepthook = lambda failure: fail(world, failure.exc_value)
    if not watched:
        guard.release()
    try:
        code = body(world)
        note_code(code)
        return code
    except Exception as error:
        fail(world, error)
        return EXIT_ERROR
    finally:
        stop.close()
        alone.close()
        guard.release()
        settle_streams()
        if launched():
            signal.alarm(END_SECONDS)  # MPI_Finalize waits for all ranks, one of which may be stopped


def end_start(number: int, world: World | None) -> None:
    """End a job that is asked to stop before it has anything to save, from the thread that signals wake."""
    rank = int(task_number()) if world is None else world.rank
    text = f"dba3c: rank {rank} was asked to stop before training began; nothing was lost"
    foresee(EXIT_STOPPED)
    if rank == 0:
        log(text)  # at once: mpirun kills its ranks a quarter of a second after it passed a signal on
    # If all ranks are asked, as by Ctrl-C, the first one says it for all; a launcher that ends a job sends SIGTERM.
    time.sleep((2.0 if number == signal.SIGTERM else 0.0) + (0.5 if rank else 0.0))
    with suppress(OSError, ValueError):
        to_stderr(text)
    if world is None:
        note_code(EXIT_STOPPED)
        os._exit(EXIT_STOPPED)
    abort(world.comm, EXIT_STOPPED)
