"""Launchers whose ranks are all on this host: what keeps Open MPI from listening on other interfaces than the loopback.

Environment variables, which MPICH and other launchers pass over; the Makefile sets the same. PMIx listens on the
loopback by itself. The port of mpirun's own daemon stays open: Open MPI 5.0 binds it to all interfaces, whatever it is
told (prte_if_include=lo makes it refuse to start).
"""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS = {"OMPI_MCA_btl": "self,sm"}  # without tcp, for which every rank would listen


def single_host(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a launcher; what the user has set stays."""
    return SETTINGS | dict(environment)
