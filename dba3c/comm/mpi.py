"""Transport over mpi4py."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from dba3c.types import Array


class MpiTransport:
    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size

    def sum(self, array: Array) -> None:
        self._comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)

    def broadcast(self, value: Any) -> Any:
        return self._comm.bcast(value)

    def gather(self, value: Any) -> list[Any]:
        return self._comm.allgather(value)  # type: ignore[no-any-return]
