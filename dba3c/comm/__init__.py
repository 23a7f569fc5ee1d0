"""Strategies (how gradients become an update) and transports (how bytes travel), by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from dba3c.comm.allreduce import AllReduce
from dba3c.comm.backup import Backup
from dba3c.comm.mpi import MpiTransport
from dba3c.config import ConfigError
from dba3c.types import Transport

STRATEGIES = {"allreduce": AllReduce, "backup": Backup}


def make_transport(name: str, comm: Any) -> Transport:
    if name == "horovod":
        from dba3c.comm.horovod import HorovodTransport  # needs TensorFlow

        return HorovodTransport(comm)
    return MpiTransport(comm)


def refuse_missing(name: str) -> None:
    """Refuse a transport whose library is not installed."""
    if name == "horovod" and find_spec("horovod") is None:
        raise ConfigError(
            "comm.transport=horovod: Horovod is not installed; `make horovod` builds it, or use comm.transport=mpi"
        )
