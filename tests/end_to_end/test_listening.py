"""Who can reach a job on one host: nobody from outside can reach its ranks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes import real_jobs, waiting

LISTENING = "0A"  # state of a socket in /proc/net/tcp
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1, as the kernel writes them
WAITS = "import time; from mpi4py import MPI; MPI.COMM_WORLD.allgather(1); print('joined', flush=True); time.sleep(60)"


def listening(pid: int) -> list[str]:
    """The addresses beyond the loopback that a process listens on."""
    sockets = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(link)
        if target.startswith("socket:"):
            sockets.add(target[8:-1])
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    addresses = [row[1] for row in rows if row[3] == LISTENING and row[9] in sockets]
    return [address for address in addresses if address.split(":")[0] not in LOOPBACK]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


@pytest.mark.fault(
    50,
    "somebody else is in the network",
    "ranks on one host listen on the loopback only (mpirun itself does not)",
)
def test_ranks_on_one_host_listen_on_no_interface() -> None:
    process = real_jobs.start(2, "-c", WAITS)
    assert process.stdout is not None
    try:
        assert "joined" in process.stdout.readline()
        waiting.until(lambda: len(children(process.pid)) == 2)
        assert [listening(rank) for rank in children(process.pid)] == [[], []]
    finally:
        process.terminate()
        process.communicate(timeout=30)
