"""dba3c version: what a bug report needs."""

from __future__ import annotations

import platform
import subprocess
import sys

import dba3c


def test_versions_of_all_that_takes_part_are_shown() -> None:
    words = [sys.executable, "-m", "dba3c", "--version"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert rows["dba3c"] == dba3c.__version__
    assert rows["Python"] == platform.python_version()
    assert {"TensorFlow", "NumPy", "ale-py", "gymnasium", "mpi4py", "Horovod", "processor"} <= set(rows)
    assert any(name in rows["MPI"] for name in ("Open MPI", "MPICH", "Intel"))
    assert platform.release() in rows["system"]
    assert rows["cores"].split()[0].isdigit()


def test_a_reader_that_leaves_is_no_error() -> None:
    line = f"{sys.executable} -m dba3c version | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
