"""Transport over Horovod: its all-reduce for the message of an update; mpi4py, on the same MPI, for the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import tensorflow as tf

from dba3c.comm.mpi import MpiTransport
from dba3c.types import Array

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")


class HorovodTransport:
    def __init__(self, comm: MPI.Intracomm) -> None:
        self._mpi = MpiTransport(comm)
        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")  # ms between looks for work; each update waits for one
        os.environ.setdefault("HOROVOD_FUSION_THRESHOLD", "0")  # there is only one message to send
        import horovod.tensorflow as hvd

        hvd.init()
        self._hvd = hvd

    def sum(self, array: Array) -> None:
        array[:] = self._hvd.allreduce(tf.constant(array), op=self._hvd.Sum, name="update").numpy()

    def broadcast(self, value: T, root: int = 0) -> T:
        return self._mpi.broadcast(value, root)

    def gather(self, value: T) -> list[T]:
        return self._mpi.gather(value)

    def send(self, rank: int, note: object, tag: int = 0) -> None:
        self._mpi.send(rank, note, tag)

    def receive(self, tag: int = 0) -> tuple[int, Any] | None:
        return self._mpi.receive(tag)

    def send_array(self, rank: int, array: Array, tag: int) -> None:
        self._mpi.send_array(rank, array, tag)

    def receive_array(self, rank: int, array: Array, tag: int) -> Callable[[], bool]:
        return self._mpi.receive_array(rank, array, tag)

    def duplicate(self) -> HorovodTransport:
        return HorovodTransport(self._mpi.duplicate().comm)

    def shrink(self) -> HorovodTransport:
        return HorovodTransport(self._mpi.shrink().comm)
