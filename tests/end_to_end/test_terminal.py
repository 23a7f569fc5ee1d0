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
    result = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, stderr=slave, text=True, check=True)
    assert result.stdout.strip() == os.ttyname(slave)
    os.close(master)
    os.close(slave)


def test_no_terminal_in_a_batch_job() -> None:
    child = "from dba3c.job.process import terminal; print(terminal())"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    result = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"
