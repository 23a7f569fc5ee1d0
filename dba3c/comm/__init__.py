"""Strategies (how gradients become an update) and transports (how bytes travel), by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from dba3c.comm.allreduce import AllReduce
from dba3c.comm.backup import Backup
from dba3c.comm.mpi import MpiTransport, can_use_threads
from dba3c.config import ConfigError
from dba3c.sections import Comm
from dba3c.types import Transport

STRATEGIES = {"allreduce": AllReduce, "backup": Backup}


def make_transport(name: str, comm: Any) -> Transport:
    if name == "horovod":
        from dba3c.comm.horovod import HorovodTransport  # needs TensorFlow

        return HorovodTransport(comm)
    return MpiTransport(comm)


def installed(transport: str) -> bool:
    return transport != "horovod" or find_spec("horovod") is not None


def refuse_unusable(config: Comm) -> None:
    """Refuse what the libraries at hand cannot do."""
    if not installed(config.transport):
        raise ConfigError(
            "comm.transport=horovod: Horovod is not installed; `make horovod` builds it, or use comm.transport=mpi"
        )
    if config.strategy == "backup" and not can_use_threads():
        raise ConfigError(
            "comm.strategy=backup: this MPI library does not allow calls from several threads (MPI_THREAD_MULTIPLE);"
            " use another one, or comm.strategy=allreduce"
        )
