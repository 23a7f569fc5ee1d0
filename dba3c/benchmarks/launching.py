"""Start ranks on this machine, one per core, and say what machine it is."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dba3c.config.messages import ConfigError


class BenchError(Exception):
    """A benchmark could not be run; the message says why."""


def command(name: str, work: Callable[[], None]) -> int:
    """Do what a command is for; its exit code, after a message if it was refused or failed."""
    try:
        work()
    except (ConfigError, BenchError) as error:
        print(f"dba3c {name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def cores() -> int:
    return len(os.sched_getaffinity(0))


def machine() -> dict[str, Any]:
    """What every result carries with it."""
    models = re.findall(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {"cpu": models[0] if models else platform.processor(), "cores": cores(), "system": platform.platform()}


def mpirun() -> str:
    """The launcher of this environment, or the site's."""
    found = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        raise BenchError(
            "no mpirun was found; install one with pip install 'dba3c[mpi]' or load your site's MPI module"
        )
    return found


def launcher(ranks: int, threads: int) -> list[str]:
    """mpirun for ranks that have `threads` cores each."""
    return ["-np", str(ranks), "--map-by", f"slot:PE={threads}", "--bind-to", "core"]


def run(
    ranks: int, module: str, arguments: list[str], threads: int = 1, show: bool = False, oversubscribe: bool = False
) -> None:
    """Run a module of this package on ranks with cores of their own; its output if asked for, or if it fails."""
    layout = ["-np", str(ranks), "--oversubscribe"] if oversubscribe else launcher(ranks, threads)
    words = [mpirun(), *layout, sys.executable, "-m", module, *arguments]
    allow_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    result = subprocess.run(words, env=os.environ | allow_root, capture_output=not show, text=True, check=False)
    if result.returncode:
        output = "" if show else f":\n{result.stdout}{result.stderr}"
        raise BenchError(f"{' '.join(words)} ended with code {result.returncode}{output}")
