"""The terminal: a rank finds that of its launcher, and none in a batch job."""

from __future__ import annotations

import os
import pty
import subprocess
import sys


def test_the_terminal_of_a_launcher_is_found() -> None:
    """A child whose stderr is a pipe finds the terminal of its parent's stderr."""
    child = "from dba3c.job.process import terminal; print(terminal().name)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    master, slave = pty.openpty()
    words = [sys.executable, "-c", parent]
    environment = os.environ | {"OMPI_COMM_WORLD_RANK": "0"}
    result = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=slave, text=True, check=True)
    assert result.stdout.strip() == os.ttyname(slave)
    os.close(master)
    os.close(slave)


def test_the_terminal_of_a_shell_is_not_used() -> None:
    """As in `dba3c train > log 2>&1` and `dba3c train 2>&1 | tee log`, typed at a terminal: the log gets the output."""
    child = "from dba3c.job.process import terminal; print(terminal())"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    master, slave = pty.openpty()
    words = [sys.executable, "-c", parent]
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=slave, text=True, check=True)
    assert result.stdout.strip() == "None"
    os.close(master)
    os.close(slave)


def test_no_terminal_in_a_batch_job() -> None:
    child = "from dba3c.job.process import terminal; print(terminal())"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    result = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"
