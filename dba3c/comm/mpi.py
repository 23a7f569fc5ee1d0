"""Transport over mpi4py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from mpi4py import MPI

from dba3c.comm import RanksFailedError, survives_failures
from dba3c.types import Array

T = TypeVar("T")

FAILURES = (MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED)


@contextmanager
def mapping_failures() -> Iterator[None]:
    """Raise RanksFailedError for what MPI reports when a rank has failed, or when another rank has noticed that."""
    try:
        yield
    except MPI.Exception as error:
        if survives_failures() and error.Get_error_class() in FAILURES:
            raise RanksFailedError(str(error)) from error
        raise


class MpiTransport:
    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self._sending: list[MPI.Request] = []
        self._duplicates: list[MPI.Intracomm] = []

    def sum(self, array: Array) -> None:
        with mapping_failures():
            self.comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)

    def broadcast(self, value: T, root: int = 0) -> T:
        with mapping_failures():
            received: T = self.comm.bcast(value, root)
            return received

    def gather(self, value: T) -> list[T]:
        with mapping_failures():
            return self.comm.allgather(value)

    def send(self, rank: int, note: object, tag: int = 0) -> None:
        with mapping_failures():
            self._sending = [request for request in self._sending if not request.Test()]
            self._sending.append(self.comm.isend(note, rank, tag))

    def receive(self, tag: int = 0) -> tuple[int, Any] | None:
        status = MPI.Status()
        with mapping_failures():
            if not self.comm.iprobe(tag=tag, status=status):
                return None
            return status.Get_source(), self.comm.recv(source=status.Get_source(), tag=tag)

    def send_array(self, rank: int, array: Array, tag: int) -> None:
        with mapping_failures():
            self._sending = [request for request in self._sending if not request.Test()]
            self._sending.append(self.comm.Isend(array, rank, tag))

    def receive_array(self, rank: int, array: Array, tag: int) -> Callable[[], bool]:
        with mapping_failures():
            request = self.comm.Irecv(array, rank, tag)

        def arrived() -> bool:
            with mapping_failures():
                return request.Test()

        return arrived

    def duplicate(self) -> Self:
        self._duplicates.append(self.comm.Dup())
        return type(self)(self._duplicates[-1])

    def shrink(self) -> Self:
        for comm in (self.comm, *self._duplicates):
            comm.Revoke()  # wakes up ranks that still wait for a message of a failed one
        return type(self)(MPI.Intracomm(self.comm.Shrink()))


def can_use_threads() -> bool:
    return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)
