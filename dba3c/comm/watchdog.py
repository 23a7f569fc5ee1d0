"""A thread on each rank that listens whether the others are still there, whatever their main threads do.

Every rank tells rank 0 now and then that it lives, and where it is; rank 0 tells every rank. Whoever hears nothing
for too long names the silent one and ends the job: nobody waits for ever in an all-reduce that cannot come to its end.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dba3c.comm.mpi import RanksLostError
from dba3c.types import Communicator, Gradient, SupportsBool, Update

BEATS_PER_LIMIT = 30
WORTH_TELLING = 3.0  # seconds of silence of a rank that came back
PATIENCE = 10.0  # times the median update that an update may take

COMPUTING, ARRIVED, ELSEWHERE = "computing", "arrived", "elsewhere"


class Beat(NamedTuple):
    """What a rank says about itself."""

    update: int  # the last one that it has finished
    doing: str  # COMPUTING its part of the next one, ARRIVED with it, or ELSEWHERE, as in an evaluation


class Heard(NamedTuple):
    beat: Beat
    when: float  # time.monotonic()


class Watchdog:
    def __init__(
        self,
        notes: Any,  # a transport of its own
        hosts: list[str],
        seconds: float,
        lost: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        """`lost` is told, once, who is missing and since when; it ends the job. `say` gets what is only interesting."""
        self._notes, self._hosts, self._seconds, self._lost, self._say = notes, hosts, seconds, lost, say
        self._period = seconds / BEATS_PER_LIMIT
        self._me = Beat(0, ELSEWHERE)
        self._went_on, self._durations = time.monotonic(), deque[float](maxlen=100)  # of updates
        others = range(1, len(hosts)) if notes.rank == 0 else range(1)
        self._heard = {rank: Heard(self._me, time.monotonic()) for rank in others}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self._thread.start()

    def arrived(self) -> None:
        self._me = self._me._replace(doing=ARRIVED)

    def finished(self, update: int) -> None:
        now = time.monotonic()
        if self._me.update == update - 1:
            self._durations.append(now - self._went_on)
        self._me, self._went_on = Beat(update, COMPUTING), now

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """This rank does something that may take long."""
        before, self._me = self._me, self._me._replace(doing=ELSEWHERE)
        yield
        self._me, self._went_on = before, time.monotonic()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        try:
            looked = time.monotonic()
            while not self._closing.wait(self._period):
                self._beat()
                self._listen()
                before, looked = looked, time.monotonic()
                if looked - before > WORTH_TELLING + self._period:
                    self._forgive()
                missing = self._missing()
                if missing is not None:
                    self._lost(missing)
                    return
        except RanksLostError:
            pass  # the main thread will meet the same and knows what to do

    def _forgive(self) -> None:
        """This rank itself was away, stopped by a signal, say: what it did not hear is nobody's fault."""
        now = time.monotonic()
        self._heard = {rank: heard._replace(when=now) for rank, heard in self._heard.items()}
        self._went_on = now

    def _beat(self) -> None:
        for rank in self._heard:
            self._notes.post(rank, self._me)

    def _listen(self) -> None:
        now = time.monotonic()
        while (note := self._notes.pick()) is not None:
            rank, beat = note
            last, silence = self._heard[rank].beat, now - self._heard[rank].when
            if silence > max(WORTH_TELLING, 2 * self._period) and last.doing != ELSEWHERE:
                self._say(f"{self._name(rank)} was silent for {silence:.1f} s")
            self._heard[rank] = Heard(Beat(*beat), now)

    def _name(self, rank: int) -> str:
        return f"rank {rank} on {self._hosts[rank]}"

    def _missing(self) -> str | None:
        """Who is missing, if anybody is."""
        now = time.monotonic()
        # All but the first would say the same of rank 0; they wait for the word of rank 1.
        limit = self._seconds + self._period * min(max(self._notes.rank - 1, 0), BEATS_PER_LIMIT / 2)
        for rank, heard in self._heard.items():
            if now - heard.when > limit:
                return (
                    f"{self._name(rank)} is dead, stopped or cut off: nothing was heard of it for"
                    f" {now - heard.when:.0f} s; by its last word it had finished update {heard.beat.update:,}"
                )
        return self._stuck(now) if self._notes.rank == 0 else None

    def _stuck(self, now: float) -> str | None:
        """On rank 0: who keeps everybody waiting for longer than an update can take."""
        beats = {0: self._me} | {rank: heard.beat for rank, heard in self._heard.items()}
        if ELSEWHERE in {beat.doing for beat in beats.values()}:
            self._went_on = now
            return None
        if any(now - heard.when > 3 * self._period for heard in self._heard.values()):
            return None  # if that rank stays silent, it will be named for that
        usual = statistics.median(self._durations) if self._durations else 0.0
        waited = now - self._went_on
        if waited < max(self._seconds, PATIENCE * usual):
            return None
        late = [rank for rank, beat in beats.items() if beat.doing == COMPUTING and beat.update <= self._me.update]
        who = ", ".join(map(self._name, late)) or "the network"
        return f"{who} does not get on with update {self._me.update + 1:,}: everybody has waited for {waited:.0f} s"


class Watched:
    """A communicator under the eyes of a watchdog."""

    def __init__(self, inner: Communicator, watchdog: Watchdog) -> None:
        self._inner, self._watchdog = inner, watchdog

    def update(self, gradient: Gradient | None, stop: SupportsBool) -> list[Update]:
        self._watchdog.arrived()
        updates = self._inner.update(gradient, stop)
        self._watchdog.finished(updates[-1].number)
        return updates

    def close(self) -> None:
        self._inner.close()
