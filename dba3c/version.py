"""Print what a bug report must say: the versions of everything that takes part, and the machine.

dba3c version
"""

from __future__ import annotations

import os
import platform
import sys

import dba3c
from dba3c.job import command_line, cores
from dba3c.job.command_line import Parser
from dba3c.job.handshake import version
from dba3c.job.world import mpi_library


def parser() -> Parser:
    return Parser(prog="dba3c version", description="Print the versions and the machine, for a bug report.")


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: show(argv))


def show(argv: list[str]) -> None:
    parser().parse_args(argv)
    print("\n".join(f"{name:11} {text}" for name, text in rows().items()))


def rows() -> dict[str, str]:
    """Return the version of each part, and what this machine is."""
    here = cores.place("")
    quota = "" if here.quota == cores.UNLIMITED else f", of which its cgroup grants {here.quota:g}"
    return {
        "dba3c": dba3c.__version__,
        "Python": platform.python_version(),
        "TensorFlow": version("tensorflow-cpu", "tensorflow"),
        "Keras": version("keras"),
        "NumPy": version("numpy"),
        "ale-py": version("ale-py"),
        "gymnasium": version("gymnasium"),
        "mpi4py": version("mpi4py"),
        "MPI": mpi_library(),
        "Horovod": version("horovod"),
        "system": f"{distribution()}, Linux {platform.release()}",
        "processor": cores.processor(),
        "cores": f"{len(here.cores)} for this process of {os.cpu_count()} hardware threads{quota}",
    }


def distribution() -> str:
    """Return the name of the Linux distribution."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
