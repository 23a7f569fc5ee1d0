"""The run directory and its lock."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from dba3c.config.messages import ConfigError


def prepare_directory(path: Path) -> TextIO:
    """Create the run directory and lock it while the returned file is open; ConfigError if it cannot be used.

    The kernel releases the lock when its owner exits, even after SIGKILL.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--run-dir={path}: cannot be written: {error.strerror}; choose another directory") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "another job"
        raise ConfigError(
            f"--run-dir={path}: {owner} is training there; wait until it has ended or choose another directory"
        ) from None
    except OSError:
        pass  # the file system has no locks
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file
