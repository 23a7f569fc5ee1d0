"""Launchers whose ranks are all on this host: what keeps Open MPI from listening on other interfaces than the loopback.

Environment variables, which MPICH and other launchers pass over. PMIx listens on the loopback by itself. The port of
mpirun's own daemon stays open: Open MPI 5.0 binds it to all interfaces, whatever it is told (prte_if_include=lo makes
it refuse to start).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping

SETTINGS = {
    "OMPI_MCA_btl": "self,sm",  # without tcp, for which every rank would listen
    "OMPI_MCA_osc": "^ucx",  # prints an error where there is no such network, when ranks share memory
}
SHARED_MEMORY = "/dev/shm"
BYTES_PER_RANK = 20 << 20  # Open MPI's file takes 16 MiB, and a copy between two ranks a little more


def single_host(environment: Mapping[str, str], ranks: int) -> dict[str, str]:
    """Return the environment for a launcher of `ranks` ranks; what the user has set stays."""
    return (SETTINGS if shared_memory_holds(ranks) else {}) | dict(environment)


def shared_memory_holds(ranks: int) -> bool:
    """Whether each rank can make its file there: without sm the ranks need tcp (a container has 64 MB by default)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and limit < BYTES_PER_RANK:
        return False
    try:
        disk = os.statvfs(SHARED_MEMORY)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize >= ranks * BYTES_PER_RANK
