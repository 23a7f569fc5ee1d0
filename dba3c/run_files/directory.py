"""The run directory: its lock, log.txt, and the exit code that the job which trains there has come to."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self, TextIO

from dba3c.config.messages import ConfigError
from dba3c.run_files import write_atomically
from dba3c.run_files.untrusted import opened, read

EXIT_CODE = "exit_code"  # a file
STOPPED = 75  # as in job/exit.py
LOOK_SECONDS = 5.0  # between looks whether the run directory is still there
MOST_LOCK_BYTES = 1000
MOST_LOG_BYTES = 10**9
TAIL_BYTES = 20_000  # of log.txt, that are looked at for the end of a run


class Log(Protocol):
    """What writes into a run directory."""

    def say(self, text: str) -> None: ...
    def reopen(self) -> None: ...  # its files, which were removed


class TakenError(ConfigError):
    """Another job trains in the directory."""


class Claim:
    """A run directory that this job has locked; it may be removed, and created again by another job."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = lock_directory(path)

    @property
    def holds(self) -> bool:
        """Whether the lock is still the file that another job would find."""
        try:
            return os.path.samestat(os.lstat(self._path / "lock"), os.fstat(self._lock.fileno()))
        except OSError as error:
            return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)  # a disk may fail for a while

    @property
    def replaced(self) -> bool:
        """Whether another job has created the directory again and locked it, even if it has ended since."""
        return not self.holds and os.path.lexists(self._path / "lock")

    def renew(self) -> None:
        """Create the directory again and lock it; TakenError if another job was faster, ConfigError if it cannot be."""
        lock = lock_directory(self._path)
        self._lock.close()
        self._lock = lock

    def close(self) -> None:
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class RunDirectory:
    """Looks after the run directory: one that was removed is created again; one that another job took ends this job."""

    def __init__(self, run_dir: Path, claim: Claim | None, log: Log) -> None:
        """`claim` is None on ranks that write nothing."""
        self.claim = claim
        self.taken = False
        self._run_dir = run_dir
        self._log = log
        self._looked = time.monotonic()

    def refuse_others(self, _update: int) -> None:
        """Raise OSError if another job has taken the directory: its checkpoints are not ours to mix with."""
        if self.claim is not None and self.claim.replaced:
            raise OSError(errno.EBUSY, "the directory was removed, and another job has begun to train there")

    def look_now_and_then(self) -> None:
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self.look()

    def look(self) -> None:
        self._looked = time.monotonic()
        if self.claim is None or self.taken or self.claim.holds:
            return
        try:
            self.taken = self.claim.replaced
            if not self.taken:
                self.claim.renew()
                self._log.reopen()
                self._log.say(f"{self._run_dir} or its lock was removed: it was created again, and training continues")
        except TakenError:
            self.taken = True
        except ConfigError:
            pass  # the next save reports it
        if self.taken:
            self._log.say(
                f"{self._run_dir} was removed, and another job has begun to train there: this one ends, as two would"
                " spoil each other's checkpoints; rerun it in another directory"
            )


def lock_directory(path: Path) -> TextIO:
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
        raise TakenError(
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


def prepare_directory(path: Path) -> Claim:
    """Create and lock the run directory for a new job; ConfigError if it cannot be used."""
    claim = Claim(path)
    with suppress(OSError):  # the one that an earlier job has come to
        (path / EXIT_CODE).unlink()
    return claim


def note_exit_code(path: Path, code: int) -> None:
    """Note why a job is about to end, before a launcher may kill it; the first reason stays.

    mpirun that gets a signal, and kills its ranks for it, ends with code 1, as it does when a rank fails.
    """
    if path.is_dir():  # on other hosts it may not be there
        with suppress(FileExistsError):
            descriptor = os.open(path / EXIT_CODE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
            try:
                os.write(descriptor, b"%d\n" % code)
            finally:
                os.close(descriptor)


def write_exit_code(path: Path, code: int) -> None:
    """Note how a job has ended, whatever was expected of it."""
    if exit_code(path) != code:
        write_atomically(path / EXIT_CODE, b"%d\n" % code)


def exit_code(path: Path) -> int | None:
    """Return the exit code that the last job there has come to by itself; None if it was killed or still trains."""
    try:
        return int(read(path / EXIT_CODE, 10))
    except (OSError, ValueError):
        return None


def stopped(path: Path) -> bool:
    """Whether a signal has stopped the last job there, and the same command resumes it."""
    return exit_code(path) == STOPPED


def lock_host(run_dir: Path) -> str | None:
    """Return the host whose job has, or had, the lock of a run directory."""
    try:
        words = read(run_dir / "lock", MOST_LOCK_BYTES).decode(errors="replace").split()
    except (OSError, ValueError):
        return None
    return words[3] if len(words) == 4 else None  # process NUMBER on HOST


def locked_here(run_dir: Path) -> bool:
    """Whether a process of this host holds the lock; to try it would refuse a job that starts at this moment."""
    try:
        number = str(os.stat(run_dir / "lock", follow_symlinks=False).st_ino)
        table = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    files = [word for line in table if " FLOCK " in line for word in line.split() if word.count(":") == 2]
    return any(file.rpartition(":")[2] == number for file in files)


def last_messages(run_dir: Path) -> list[str]:
    """Return the newest lines of log.txt, without their time; none if it cannot be read."""
    try:
        with opened(run_dir / "log.txt", MOST_LOG_BYTES) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    return [line.partition("  ")[2] for line in lines]


class LogFile:
    """Appends messages, whatever became of the terminal; opened for each, so that one removed meanwhile comes back."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / "log.txt"

    def write(self, text: str) -> None:
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        data = "".join(f"{stamp}  {line}\n" for line in text.splitlines())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o644)
        try:
            os.write(file, data.encode("utf-8", "replace"))
        finally:
            os.close(file)
