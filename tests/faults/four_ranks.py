"""Four real ranks, something that goes wrong, and what is left afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dba3c.run_files import checkpoint
from tests.fakes import real_jobs, waiting

RANKS = 4
HOST = socket.gethostname()
SHARED_MEMORY = Path("/dev/shm")
GUARD = "a guard"  # over the start of a rank
FAULT_TOLERANT = ("--with-ft", "ulfm")


class Ended(NamedTuple):
    code: int
    output: str
    seconds: float  # from the fault, or from the first update, to the end of the job


class Job:
    """A training on four ranks, or as many as are asked for, watched line by line."""

    def __init__(
        self,
        run_dir: Path,
        *options: str,
        fault: str = "",
        launcher: tuple[str, ...] = (),
        ranks: int = RANKS,
        program: tuple[str, ...] = ("dba3c.train",),
    ) -> None:
        self.run_dir, self.output, self._pids = run_dir, "", list[int]()
        self._shared_before = set(SHARED_MEMORY.iterdir())
        mpirun, *rest = real_jobs.command(ranks, "-m", *program, *real_jobs.TINY, f"--run-dir={run_dir}", *options)
        self._process = real_jobs.start_words([mpirun, *launcher, *rest], DBA3C_FAULT=fault)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.output += line

    def wait_for_update(self, update: int) -> None:
        """Until a checkpoint of that update, or a later one, is there."""
        waiting.until(lambda: newest_update(self.run_dir) >= update, why=lambda: self.output)

    def wait_for_words(self, words: str, seconds: float = real_jobs.PATIENCE) -> None:
        waiting.until(lambda: words in self.output, seconds, why=lambda: self.output)

    def rank(self, number: int) -> int:
        """Its process."""
        return self.ranks()[number]

    def ranks(self) -> list[int]:
        return real_jobs.ranks_of(self._process.pid)

    def signal(self, rank: int, number: signal.Signals) -> float:
        os.kill(self.rank(rank), number)
        return time.monotonic()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def name_of(self, process: int) -> str:
        """Say what one of its processes is."""
        ranks = self.ranks()
        if process == self._process.pid:
            return "the launcher"
        return f"rank {ranks.index(process)}" if process in ranks else GUARD

    def processes(self) -> list[int]:
        """The launcher and all that it has started."""
        started = [pid for pid in real_jobs.descendants(self._process.pid) if alive(pid)]
        self._pids = list({*self._pids, *started})
        return [self._process.pid, *started]

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self, since: float, seconds: float = real_jobs.PATIENCE, started: bool = True) -> Ended:
        """Wait for the end; a job that outlives its time is killed and fails the test. Nothing may be left over.

        Only a job that has not `started` to train may leave shared memory, which it has not yet taken the names from.
        """
        pids = self._pids or real_jobs.ranks_of(self._process.pid)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the job hangs:\n{self.output}") from None
        took = time.monotonic() - since
        self._reader.join(10)
        waiting.until(lambda: not any(alive(pid) for pid in pids), 60, lambda: f"processes of {pids} are left")
        waiting.until(lambda: not started or not self._shared(), 10, lambda: f"shared memory is left: {self._shared()}")
        return Ended(self._process.returncode, self.output, took)

    def free_shared_memory(self) -> None:
        """Remove what a job left that was killed before it could take the names from its shared memory."""
        for path in self._shared():
            path.unlink(missing_ok=True)

    def _shared(self) -> set[Path]:
        """Shared memory that came with this job and that no process has any more."""
        new = set(SHARED_MEMORY.iterdir()) - self._shared_before
        return new and {path for path in new if not any(str(path) in text for text in all_maps())}

    def kill(self) -> None:
        for pid in (*real_jobs.ranks_of(self._process.pid), self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def ended_by(fault: str, run_dir: Path, *options: str, launcher: tuple[str, ...] = ()) -> Ended:
    """A job that some injected fault ends; counted from the newest checkpoint, the last thing before the fault."""
    job = Job(run_dir, *options, fault=fault, launcher=launcher)
    job.wait_for_update(10)
    return job.end(time.monotonic())


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def all_maps() -> Iterator[str]:
    """What every process has in its memory."""
    for path in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            yield path.read_text(encoding="utf-8", errors="replace")


def newest_update(run_dir: Path) -> int:
    """Of the checkpoints, 0 if there is none."""
    return max((checkpoint.update_of(path) for path in checkpoint.newest_first(run_dir / "checkpoints")), default=0)


def loadable(run_dir: Path) -> int:
    """The update of the newest checkpoint, which loads without complaint."""
    warnings: list[str] = []
    saved = checkpoint.load_newest(run_dir / "checkpoints", warnings.append)
    assert saved is not None
    assert not warnings
    return int(saved.progress["updates"])


def lines(output: str, words: str) -> list[str]:
    """The lines of ours that say that."""
    return [line for line in output.splitlines() if "dba3c:" in line and re.search(words, line)]
