"""The queue of a sweep: so many trainings at a time, each a process of its own that saves when it is asked to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dba3c.job import cores, launch
from dba3c.job.exit import EXIT_OK, EXIT_STOPPED
from dba3c.job.signals import STOP_SIGNALS
from dba3c.run_files import directory
from dba3c.sweeps.plan import Training

POLL_SECONDS = 0.2
TAIL_BYTES = 20_000
WAITING = "waiting"
RUNNING = "running"
FINISHED = "finished"
STOPPED = "stopped"
FAILED = "failed"


class Ended(NamedTuple):
    """A training that failed."""

    training: Training
    code: int
    last_line: str
    log: Path


class Process(NamedTuple):
    """A training that runs."""

    slot: int
    popen: subprocess.Popen[bytes]


class Queue:
    """Runs the trainings of a plan; `states` says what has become of each."""

    def __init__(self, trainings: list[Training], jobs: int, nice: int, logs: Path) -> None:
        self._trainings = {training.name: training for training in trainings}
        self._nice = nice
        self._logs = logs
        self._cores = slots(jobs)
        self._running: dict[str, Process] = {}
        self._asked = 0  # how often this process was asked to end
        self.failures: list[Ended] = []
        self.states = {one.name: FINISHED if one.finished else WAITING for one in trainings}

    def run(self, changed: Callable[[], None]) -> int:
        """Run until all trainings have ended, or a signal has stopped them; return the exit code.

        `changed` is called whenever a training begins or ends, and every POLL_SECONDS.
        """
        before = {number: signal.signal(number, self._ask) for number in STOP_SIGNALS}
        try:
            while self._running or (WAITING in self.states.values() and not self._asked):
                self._collect()
                self._start_some()
                changed()
                time.sleep(POLL_SECONDS)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._asked and any(state in (WAITING, STOPPED) for state in self.states.values()):
            return EXIT_STOPPED
        return 1 if self.failures else EXIT_OK

    def _ask(self, _number: int, _frame: object) -> None:
        """Ask every training to save and end; a second time, to end at once, as dba3c train does."""
        self._asked += 1
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.popen.send_signal(signal.SIGTERM)

    def _start_some(self) -> None:
        for name, training in self._trainings.items():
            free = set(range(len(self._cores))) - {process.slot for process in self._running.values()}
            if not free or self._asked:
                return
            # A training of a sweep that was killed may still be saving, or another sweep may have taken this one.
            if self.states[name] == WAITING and not directory.locked_here(training.run_dir):
                self._start(training, min(free))

    def _start(self, training: Training, slot: int) -> None:
        if training.finished:  # by another sweep
            self.states[training.name] = FINISHED
            return

        def prepare() -> None:
            launch.end_with_parent()  # SIGTERM: even if this process is killed, its trainings save and end
            os.nice(self._nice)
            os.sched_setaffinity(0, self._cores[slot])

        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(training.name).open("ab") as log:
            popen = subprocess.Popen(
                [sys.executable, "-m", "dba3c.train", *training.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C reaches this process alone, which asks each training once
                preexec_fn=prepare,  # noqa: PLW1509 (this process has one thread)
            )
        self._running[training.name] = Process(slot, popen)
        self.states[training.name] = RUNNING

    def _collect(self) -> None:
        for name, process in list(self._running.items()):
            code = process.popen.poll()
            if code is None:
                continue
            del self._running[name]
            code = 128 - code if code < 0 else code
            self.states[name] = FINISHED if code == EXIT_OK else STOPPED if code == EXIT_STOPPED else FAILED
            if self.states[name] == FAILED:
                self.failures.append(Ended(self._trainings[name], code, last_line(self.log(name)), self.log(name)))

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def slots(jobs: int) -> list[set[int]]:
    """Divide the cores that this process may use among the trainings; more trainings than cores share all of them."""
    everything = sorted(os.sched_getaffinity(0))
    mine = cores.physical_cores(set(everything))
    if jobs > len(mine):
        return [set(everything)] * jobs
    return [set(mine[slot * len(mine) // jobs : (slot + 1) * len(mine) // jobs]) for slot in range(jobs)]


def last_line(file: Path) -> str:
    """Return the last line of a log that is not empty."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    return next((line.strip() for line in reversed(lines) if line.strip()), "it has said nothing")
