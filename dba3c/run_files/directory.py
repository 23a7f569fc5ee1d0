"""The run directory and its lock."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from pathlib import Path
from typing import TextIO

from dba3c.config.messages import ConfigError


def prepare_directory(path: Path) -> TextIO:
    """Create the run directory and lock it while the returned file is open; ConfigError if it cannot be used.

    The kernel releases the lock when its owner exits, even after SIGKILL.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = open_lock(path / "lock")
    except OSError as error:
        reason = "lock is a link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigError(f"--run-dir={path}: cannot be written: {reason}; choose another directory") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = file.read(200).strip() or "another job"
        raise ConfigError(
            f"--run-dir={path}: {owner} is training there; wait until it has ended or choose another directory"
        ) from None
    except OSError:
        pass  # the file system has no locks
    try:
        os.ftruncate(file.fileno(), 0)
        os.pwrite(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    except OSError as error:
        file.close()
        raise ConfigError(f"--run-dir={path}: cannot be written: {error.strerror}; choose another directory") from None
    return file


def open_lock(path: Path) -> TextIO:
    """Open or create the lock; OSError if it is a link, or anything but a file of this directory alone."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EEXIST, "lock is a file of another place, or none; remove it if you trust the directory")
    return open(descriptor, "r+", encoding="utf-8", errors="replace")
