"""Strategies (how gradients become an update) and transports (how bytes travel).

Only comm.mpi starts MPI, and only when a transport is made: films and tests of parts need none.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dba3c.config import names
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Comm
from dba3c.types import Transport

if TYPE_CHECKING:
    from mpi4py import MPI

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by mpirun --with-ft ulfm


class RanksFailedError(Exception):
    """Ranks have failed, under a launcher that lets the others survive."""


def survives_failures() -> bool:
    """Whether the launcher lets a job continue when one of its ranks fails (mpirun --with-ft ulfm)."""
    return os.environ.get(FAULT_TOLERANT, "").lower() in ("1", "true")


def make_transport(name: str, comm: MPI.Intracomm) -> Transport:
    transport: Transport = names.find("comm.transport", name)(comm)
    return transport


def installed(transport: str) -> bool:
    return transport != "horovod" or find_spec("horovod") is not None


def refuse_unusable(config: Comm, hosts: list[str]) -> None:
    """Refuse what the libraries and hosts at hand cannot do."""
    from dba3c.comm.mpi import can_use_threads

    if not installed(config.transport):
        raise ConfigError(
            "comm.transport=horovod: Horovod is not installed; `make horovod` builds it, or use comm.transport=mpi"
        )
    if config.strategy in ("backup", "server", "hogwild") and not can_use_threads():
        raise ConfigError(
            f"comm.strategy={config.strategy}: this MPI library does not allow calls from several threads"
            " (MPI_THREAD_MULTIPLE); use another one, or comm.strategy=allreduce"
        )
    if config.strategy == "hogwild" and len(set(hosts)) > 1:
        raise ConfigError(
            f"comm.strategy=hogwild: the ranks share memory, but are on {len(set(hosts))} hosts; start all of them on"
            " one host, or use comm.strategy=server"
        )
    if config.on_failure == "shrink" and (config.transport != "mpi" or not survives_failures()):
        raise ConfigError(
            "comm.on_failure=shrink: works with comm.transport=mpi under `mpirun --with-ft ulfm` of Open MPI 5 (on"
            " several hosts also --mca mpi_ft_detector true); use that, or comm.on_failure=abort"
        )
