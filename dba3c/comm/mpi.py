"""Transport over mpi4py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from mpi4py import MPI

from dba3c.types import Array

LOST = (MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED)

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by mpirun --with-ft ulfm


class RanksLostError(Exception):
    """Ranks died, under a launcher that lets the others live."""


@contextmanager
def naming_the_dead() -> Iterator[None]:
    """RanksLostError for what MPI reports when a rank has died, or when another rank has noticed that."""
    try:
        yield
    except MPI.Exception as error:
        if can_lose_ranks() and error.Get_error_class() in LOST:
            raise RanksLostError(str(error)) from error
        raise


class MpiTransport:
    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._on_the_way: list[Any] = []  # notes
        self._twins: list[Any] = []

    def sum(self, array: Array) -> None:
        with naming_the_dead():
            self.comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)

    def broadcast(self, value: Any, root: int = 0) -> Any:
        with naming_the_dead():
            return self.comm.bcast(value, root)

    def gather(self, value: Any) -> list[Any]:
        with naming_the_dead():
            return self.comm.allgather(value)  # type: ignore[no-any-return]

    def post(self, rank: int, note: Any, tag: int = 0) -> None:
        """Send a note and do not wait for its arrival."""
        with naming_the_dead():
            self._on_the_way = [request for request in self._on_the_way if not request.Test()]
            self._on_the_way.append(self.comm.isend(note, rank, tag))

    def pick(self, tag: int = 0) -> tuple[int, Any] | None:
        """The next note that has arrived, and who sent it."""
        status = MPI.Status()
        with naming_the_dead():
            if not self.comm.iprobe(tag=tag, status=status):
                return None
            return status.Get_source(), self.comm.recv(source=status.Get_source(), tag=tag)

    def twin(self) -> Self:
        """A transport of the same ranks whose messages do not meet this one's: for another thread."""
        self._twins.append(self.comm.Dup())
        return type(self)(self._twins[-1])

    def survivors(self) -> Self:
        """A transport of the ranks that are still alive, in their old order; all of them must ask for it."""
        for comm in (self.comm, *self._twins):
            comm.Revoke()  # wakes up those who still wait for a message of the dead
        return type(self)(self.comm.Shrink())


def can_use_threads() -> bool:
    return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)


def can_lose_ranks() -> bool:
    """The launcher lets a job live on when one of its ranks dies (mpirun --with-ft ulfm)."""
    return os.environ.get(FAULT_TOLERANT, "").lower() in ("1", "true")
