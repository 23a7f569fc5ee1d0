"""A thread on each rank that checks whether the others are still alive, whatever their main threads do.

Every rank sends rank 0 a heartbeat, which says where it is, and rank 0 sends one to every rank. A rank that receives
none for too long names the silent one and ends the job: no rank waits for ever in an all-reduce that cannot complete.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dba3c.comm import RanksFailedError
from dba3c.types import Gradient, Say, Stop, Strategy, Transport, Update

BEATS_PER_LIMIT = 30
WORTH_REPORTING = 3.0  # seconds of silence of a rank that came back
PATIENCE = 10.0  # times the median update that an update may take
LONGEST_PERIOD = 1.0  # seconds between beats

COMPUTING = "computing"
ARRIVED = "arrived"
BUSY = "busy"


class Beat(NamedTuple):
    """What a rank says about itself."""

    update: int  # the last one that it has finished
    doing: str  # COMPUTING its part of the next one, ARRIVED with it, or BUSY with something long, as an evaluation


class LastBeat(NamedTuple):
    beat: Beat
    when: float  # time.monotonic()


class Task(NamedTuple):
    """What a rank is busy with."""

    what: str
    usual: float  # seconds after which it is reported that it takes long
    most: float  # seconds that it may take
    since: float  # time.monotonic()
    reported: bool = False  # that it takes long


class NullWatchdog:
    """Watches nothing."""

    def set(self, silence_seconds: float, on_failure: Say | None = None, say: Say | None = None) -> None: ...
    def arrived(self) -> None: ...
    def finished(self, update: int) -> None: ...

    @contextmanager
    def busy(self, what: str, seconds: float = float("inf")) -> Iterator[None]:  # noqa: ARG002
        yield

    def close(self) -> None: ...


class Watchdog:
    def __init__(
        self,
        transport: Transport,
        names: list[str],
        silence_seconds: float,
        on_failure: Say,
        say: Say,
        start_seconds: float = float("inf"),
    ) -> None:
        """`names` are those of the ranks; `transport` is the watchdog's own; the start may take `start_seconds`.

        `on_failure` gets, once, who failed and how; it must end the job.
        """
        self._transport = transport
        self._names = names
        self._own = Beat(0, BUSY)
        self._task = Task("starting", silence_seconds, start_seconds, time.monotonic())
        self._resumed = time.monotonic()
        self._newest = 0  # update that any rank has finished
        self._on_failure = on_failure
        self._say = say
        self.set(silence_seconds)
        self._durations: deque[float] = deque(maxlen=100)  # of updates
        others = range(1, len(names)) if transport.rank == 0 else range(1)
        self._last = {rank: LastBeat(self._own, time.monotonic()) for rank in others}
        self._looked = time.monotonic()  # last time that the thread ran
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self._thread.start()

    def set(self, silence_seconds: float, on_failure: Say | None = None, say: Say | None = None) -> None:
        """Change the limit and the callbacks: the start of a job may take longer than an update."""
        self._limit = silence_seconds
        self._on_failure = on_failure or self._on_failure
        self._say = say or self._say
        self._period = min(silence_seconds / BEATS_PER_LIMIT, LONGEST_PERIOD)

    def arrived(self) -> None:
        self._own = self._own._replace(doing=ARRIVED)

    def finished(self, update: int) -> None:
        now = time.monotonic()
        if self._own.update == update - 1:
            self._durations.append(now - self._resumed)
        self._own = Beat(update, COMPUTING)
        self._resumed = now

    @contextmanager
    def busy(self, what: str, seconds: float = float("inf")) -> Iterator[None]:
        """Declare that this rank does something that may take long, but not longer than `seconds`.

        It is reported once if it takes longer than a silent rank may be silent.
        """
        before = self._own, self._task
        self._task = Task(what, self._limit, seconds, time.monotonic())
        self._own = self._own._replace(doing=BUSY)
        try:
            yield
        finally:
            self._own, self._task = before
            self._resumed = time.monotonic()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        try:
            while not self._closing.wait(self._period):
                self._note_absence()
                self._send_beats()
                self._receive_beats()
                self._note_absence()
                failure = self._failure()
                if failure is not None:
                    self._on_failure(failure)
                    return
        except RanksFailedError:
            pass  # the main thread will meet the same error and handles it

    def _note_absence(self) -> None:
        """Excuse the others if this rank itself was away, stopped by a signal, say."""
        before, now = self._looked, time.monotonic()
        self._looked = now
        if now - before < WORTH_REPORTING + self._period:
            return
        self._last = {rank: last._replace(when=now) for rank, last in self._last.items()}
        self._task = self._task._replace(since=now)
        self._resumed = now

    def _send_beats(self) -> None:
        for rank in self._last:
            self._transport.send(rank, self._own)

    def _receive_beats(self) -> None:
        now = time.monotonic()
        while self._last and (note := self._transport.receive()) is not None:
            rank, beat = note
            last = self._last[rank]
            silence = now - last.when
            if silence > max(WORTH_REPORTING, 2 * self._period) and last.beat.doing != BUSY:
                self._say(f"{self._names[rank]} was silent for {silence:.1f} s")
            self._last[rank] = LastBeat(Beat(*beat), now)

    def _failure(self) -> str | None:
        """Name the rank that has failed, if one has."""
        now = time.monotonic()
        if self._own.doing == BUSY and (overdue := self._overdue(now)):
            return overdue
        # All but rank 1 would say the same of rank 0; they leave the message to it.
        limit = self._limit + self._period * min(max(self._transport.rank - 1, 0), BEATS_PER_LIMIT / 2)
        for rank, last in self._last.items():
            if now - last.when > limit:
                return (
                    f"{self._names[rank]} is dead, stopped or cut off: no sign of life for {now - last.when:.0f} s;"
                    f" its last reported update is {last.beat.update:,}"
                )
        return self._stuck(now) if self._transport.rank == 0 and self._last else None

    def _overdue(self, now: float) -> str | None:
        """Say that this rank's own task takes too long; one that takes long, but not yet too long, is reported once."""
        own, task = self._names[self._transport.rank], self._task
        took = now - task.since
        if took > task.most:
            return f"{own} has been {task.what} for {task.most:g} s"
        if took > task.usual and not task.reported:
            self._task = task._replace(reported=True)
            if task.most < float("inf"):
                self._say(f"{own} has been {task.what} for {task.usual:g} s so far")
        return None

    def _stuck(self, now: float) -> str | None:
        """On rank 0: name the ranks without which there has been no update for longer than one can take."""
        beats = {0: self._own} | {rank: last.beat for rank, last in self._last.items()}
        before, self._newest = self._newest, max(beat.update for beat in beats.values())
        if self._newest > before or BUSY in {beat.doing for beat in beats.values()}:
            self._resumed = now
            return None
        if any(now - last.when > 3 * self._period for last in self._last.values()):
            return None  # if that rank stays silent, it will be named for that
        usual = statistics.median(self._durations) if self._durations else 0.0
        waited = now - self._resumed
        if waited < max(self._limit, PATIENCE * usual):
            return None
        computing = {rank: beat for rank, beat in beats.items() if beat.doing == COMPUTING}
        behind = [rank for rank, beat in computing.items() if beat.update < self._newest]  # where the others meet
        who = ", ".join(self._names[rank] for rank in behind or computing) or "the network"
        return f"{who} is stuck in update {self._own.update + 1:,}: the other ranks have waited for {waited:.0f} s"


class Watched:
    """A strategy that reports to a watchdog."""

    def __init__(self, inner: Strategy, watchdog: Watchdog | NullWatchdog) -> None:
        self.equal_weights = inner.equal_weights
        self._inner = inner
        self._watchdog = watchdog

    def update(self, gradient: Gradient | None, stop: Stop) -> list[Update]:
        self._watchdog.arrived()
        updates = self._inner.update(gradient, stop)
        self._watchdog.finished(updates[-1].number)
        return updates

    def close(self) -> None:
        self._inner.close()


def make_watchdog(
    transport: Transport,
    names: list[str],
    silence_seconds: float,
    on_failure: Say,
    say: Say,
    start_seconds: float = float("inf"),
) -> Watchdog | NullWatchdog:
    """Start a watchdog, unless there are other ranks to hear of and no thread may do it."""
    from dba3c.comm.mpi import can_use_threads

    if len(names) > 1 and not can_use_threads():
        say("no watchdog: this MPI library does not allow calls from several threads (MPI_THREAD_MULTIPLE)")
        return NullWatchdog()
    return Watchdog(transport.duplicate(), names, silence_seconds, on_failure, say, start_seconds)
