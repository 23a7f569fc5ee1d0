"""Settings for all tests."""

from __future__ import annotations

import os

# Before TensorFlow is imported anywhere: the tests share two cores, and one thread adds up in one order.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"

# Open MPI refuses to run as root unless told, and more ranks than cores.
os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"  # noqa: SIM112
# Ranks that wait must leave the cores to the others, of which there are more than cores.
os.environ["OMPI_MCA_mpi_yield_when_idle"] = os.environ["MPIR_CVAR_CH4_PROGRESS_THROTTLE"] = "1"  # noqa: SIM112

# tests/mpi runs under mpirun only: test_under_mpi.py starts it at several sizes.
collect_ignore = [] if os.environ.get("DBA3C_UNDER_MPI") else ["mpi"]
