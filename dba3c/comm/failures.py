"""What the rest of the program knows of failed ranks; importing it does not start MPI."""

from __future__ import annotations

import os

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by mpirun --with-ft ulfm


class RanksFailedError(Exception):
    """Ranks have failed, under a launcher that lets the others survive."""


def survives_failures() -> bool:
    """Whether the launcher lets a job continue when one of its ranks fails (mpirun --with-ft ulfm)."""
    return os.environ.get(FAULT_TOLERANT, "").lower() in ("1", "true")
