"""Strategies (how gradients become an update) and transports (how bytes travel), by name."""

from __future__ import annotations

from dba3c.comm.allreduce import AllReduce
from dba3c.comm.mpi import MpiTransport

STRATEGIES = {"allreduce": AllReduce}
TRANSPORTS = {"mpi": MpiTransport}
