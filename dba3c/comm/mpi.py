"""Transport over mpi4py."""

from __future__ import annotations

from typing import Any, Self

from mpi4py import MPI

from dba3c.types import Array


class MpiTransport:
    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size

    def sum(self, array: Array) -> None:
        self.comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)

    def broadcast(self, value: Any) -> Any:
        return self.comm.bcast(value)

    def gather(self, value: Any) -> list[Any]:
        return self.comm.allgather(value)  # type: ignore[no-any-return]

    def twin(self) -> Self:
        """A transport of the same ranks whose messages do not meet this one's: for another thread."""
        return type(self)(self.comm.Dup())

    def new_status(self) -> Any:
        return MPI.Status()


def can_use_threads() -> bool:
    return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)
