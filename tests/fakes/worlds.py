"""Jobs as seen from one of their ranks."""

from __future__ import annotations

import time

from dba3c.job.cores import Place
from dba3c.job.world import World


def world(rank: int = 0, size: int = 1) -> World:
    """Rank `rank` of a job on hosts a, b, c, …, each with a core of its own."""
    from mpi4py import MPI

    places = [Place(chr(ord("a") + number), [0], 1.0) for number in range(size)]
    return World(MPI.COMM_SELF, rank, size, places[rank].host, 1, places, time.monotonic(), tuple(range(size)))
