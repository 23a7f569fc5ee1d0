"""The run directory and its lock."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from dba3c.config.messages import ConfigError


def prepare_directory(path: Path) -> TextIO:
    """Make the run directory and lock it while the returned file is open; ConfigError if it cannot be used.

    The kernel lets go of the lock when its owner ends, however that happens.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--run-dir={path}: cannot be written: {error.strerror}; choose another one") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "another job"
        raise ConfigError(
            f"--run-dir={path}: {owner} is training there; wait for its end or choose another one"
        ) from None
    except OSError:
        pass  # a file system without locks
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file
