"""Every test on the first 1, 2, 3, … ranks of the job; one that fails on one rank ends it: the others would wait."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import cache

import pytest
from mpi4py import MPI

from dba3c.comm import make_transport
from dba3c.types import Transport

WORLD = MPI.COMM_WORLD
SIZES = [int(size) for size in os.environ.get("DBA3C_SIZES", str(WORLD.size)).split(",")]


@cache
def among_first(size: int) -> Transport:
    """The first ranks; what the others get is of no use."""
    comm = WORLD if size == WORLD.size else WORLD.Split(int(WORLD.rank < size), WORLD.rank)
    return make_transport(os.environ.get("DBA3C_TRANSPORT", "mpi"), comm)


@pytest.fixture(params=SIZES, ids=lambda size: f"{size}_ranks")
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Of the first ranks; those beyond skip the test and sleep meanwhile, as waiting in MPI takes a core."""
    among, needed = among_first(request.param), WORLD.rank < request.param
    if needed:
        yield among
    everyone = WORLD.Ibarrier()
    while not everyone.Test():
        time.sleep(0.005)
    if not needed:
        pytest.skip("this rank is not needed")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        print(f"rank {WORLD.rank}: {report.nodeid}\n{report.longreprtext}", file=sys.stderr, flush=True)
        WORLD.Abort(1)
