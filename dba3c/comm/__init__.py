"""Strategies (how gradients become an update) and transports (how bytes travel), by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from dba3c.comm.allreduce import AllReduce
from dba3c.comm.backup import Backup
from dba3c.comm.mpi import MpiTransport, can_lose_ranks, can_use_threads
from dba3c.comm.watchdog import Watchdog
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Comm
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
    if config.on_failure == "shrink" and (config.transport != "mpi" or not can_lose_ranks()):
        raise ConfigError(
            "comm.on_failure=shrink: works with comm.transport=mpi under `mpirun --with-ft ulfm` of Open MPI 5 (on"
            " several hosts also --mca mpi_ft_detector true); use that, or comm.on_failure=abort"
        )


def make_watchdog(
    config: Comm, transport: Any, hosts: list[str], lost: Callable[[str], None], say: Callable[[str], None]
) -> Watchdog | None:
    """None where there is nobody to watch, or no thread could, which is told."""
    if len(hosts) == 1:
        return None
    if not can_use_threads():
        say("no watchdog: this MPI library does not allow calls from several threads (MPI_THREAD_MULTIPLE)")
        return None
    return Watchdog(transport.twin(), hosts, config.silence_seconds, lost, say)
