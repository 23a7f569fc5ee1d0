"""A test that fails on one rank ends the whole job: the others would wait for it for ever."""

from __future__ import annotations

import os
import sys

import pytest
from mpi4py import MPI

from dba3c.comm import make_transport
from dba3c.types import Transport


@pytest.fixture
def transport() -> Transport:
    return make_transport(os.environ.get("DBA3C_TRANSPORT", "mpi"), MPI.COMM_WORLD)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        print(f"rank {MPI.COMM_WORLD.rank}: {report.nodeid}\n{report.longreprtext}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
