"""The backup-worker strategy: an update goes ahead as soon as all but `n_backup` ranks have a gradient for it.

A thread on each rank owns the communication, so a rank that is late holds nobody up: its thread joins the all-reduce
with zeros and applies the same update, and what the rank was computing is dropped when it is done.

    rank r:  main thread ── gradient ──► thread r ── "ready" ──► thread 0 (coordinator)
             thread r ◄── "go: ranks 2, 0, 3" ── thread 0, at the quorum
             all threads: one all-reduce (gradient, or zeros), the same step of the optimizer
"""

from __future__ import annotations

import threading
import time

from dba3c.comm.allreduce import AllReduce, Parts
from dba3c.config.schema import Comm
from dba3c.types import Gradient, SupportsBool, Timings, Update

READY, GO = 1, 2  # tags
WAITING, COMPUTING = 0.0001, 0.001  # seconds between looks for notes; while the rank computes, they cost it time


class Backup(AllReduce):
    """Waits for all but `n_backup` ranks; for all of them after an update for which `everyone` is true."""

    def __init__(self, config: Comm, parts: Parts) -> None:
        self._main_timings, self._notes = parts.timings, parts.transport.twin()
        super().__init__(config, parts._replace(transport=parts.transport.twin(), timings=Timings()))
        self._n_backup = min(config.n_backup, parts.transport.size - 1)  # fewer ranks may work than were configured
        self._everyone, self._first = parts.everyone, self._number
        self._arrived: list[int] = []  # coordinator: ranks with a gradient for the current weights, in their order
        self._change = threading.Condition()  # guards what follows
        self._pending: tuple[Gradient, dict[str, float]] | None = None
        self._announced = False
        self._finished: list[Update] = []  # not yet told to the main thread
        self._stop: SupportsBool = False
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="communication")
        self._thread.start()

    def update(self, gradient: Gradient | None, stop: SupportsBool) -> list[Update]:
        """The updates since the last call, at least one; a gradient for other weights than the current is dropped."""
        with self._main_timings.measure("wait"), self._change:
            self._stop = stop
            if gradient is not None and gradient.version == self._number and not self._finished:
                self._pending, self._announced = (gradient, self._own_figures(gradient)), False
                self._change.notify_all()
            self._change.wait_for(lambda: self._finished or self._error or not self._thread.is_alive())
            if self._error is not None and not self._finished:
                raise self._error
            updates, self._finished = self._finished, []
        self._ready = time.perf_counter()
        return updates

    def close(self) -> None:
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while self._serve_once():
                pass
        except BaseException as error:
            with self._change:
                self._error = error
        with self._change:
            self._change.notify_all()

    def _serve_once(self) -> bool:
        """Announce, coordinate, join; whether to go on."""
        with self._change:
            if self._closing:
                return False
            if self._pending is not None and not self._announced:
                self._announced = True
                self._notes.post(0, self._number, READY)
        participants = self._coordinate() if self._notes.rank == 0 else self._told_to_go()
        if participants is not None:
            return self._join(participants)
        with self._change:
            self._change.wait(WAITING if self._announced else COMPUTING)
        return True

    def _told_to_go(self) -> list[int] | None:
        note = self._notes.pick(GO)
        return None if note is None else note[1]

    def _quorum(self) -> int:
        """Everyone at first, as nobody knows the message yet, and where the ranks do something together."""
        ranks: int = self._notes.size
        return ranks if self._number == self._first or self._everyone(self._number) else ranks - self._n_backup

    def _coordinate(self) -> list[int] | None:
        """Collect the notes of the ranks; at the quorum tell all of them who takes part."""
        while (note := self._notes.pick(READY)) is not None:
            rank, number = note
            if number == self._number:  # others are late
                self._arrived.append(rank)
        if len(self._arrived) < self._quorum():
            return None
        participants, self._arrived = self._arrived[: self._quorum()], []
        for rank in range(1, self._notes.size):
            self._notes.post(rank, participants, GO)
        return participants

    def _join(self, participants: list[int]) -> bool:
        """Take part in one update, with a gradient or without; whether another may follow."""
        rank = self._notes.rank
        with self._change:
            stop = bool(self._stop)
            if rank in participants:
                assert self._pending is not None
                gradient, own = self._pending
                place = {"late": 0.0, "place": float(participants.index(rank))}
                self._message.write(gradient, own | place, stop)
            else:
                self._message.write_nothing({"late": 1.0, "place": float(len(participants))}, stop)
        self._transport.sum(self._message.vector)
        with self._change:
            self._pending, self._announced = None, False  # what was not in time is dropped
            update = self._apply()
            self._finished.append(update)
            self._change.notify_all()
        return not update.stop and self._steps < self._total_steps
