"""The first ranks of a job at work for some seconds, while the others sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from dba3c.job.world import World

T = TypeVar("T")
MpiComm = Any  # mpi4py.MPI.Comm, which only comm and job may import


class Deadline:
    """True some seconds after `start`; never on ranks that do not call it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = float("inf")

    def start(self) -> None:
        self._end = time.monotonic() + self._seconds

    def __bool__(self) -> bool:
        return time.monotonic() >= self._end


def on_first(world: World, count: int, work: Callable[[MpiComm], T]) -> T | None:
    """Call `work` on the first `count` ranks with their MPI communicator; return None on the others.

    The others must not wait in MPI, which waits at full speed: they sleep and leave the cores to those that work.
    """
    working = world.rank < count
    part = world.comm.Split(int(working), world.rank)
    result = work(part) if working else None
    part.Free()
    finished = world.comm.Ibarrier()
    while not finished.Test():
        time.sleep(0.01)
    return result
