"""The backup-worker strategy: an update goes ahead as soon as all but `n_backup` ranks have a gradient for it.

A thread on each rank owns the communication, so a late rank holds up no other: its thread joins the all-reduce with
zeros and applies the same update, and what the rank was computing is dropped when it is done.

    rank r:  main thread ── gradient ──► thread r ── "ready" ──► thread 0 (coordinator)
             thread r ◄── "go: ranks 2, 0, 3" ── thread 0, at the quorum
             all threads: one all-reduce (gradient, or zeros), the same step of the optimizer
"""

from __future__ import annotations

import threading

from dba3c.comm.allreduce import AllReduce, Surroundings
from dba3c.config.schema import Comm
from dba3c.timings import Timings
from dba3c.types import Gradient, Stop, Update

READY, GO = 1, 2  # tags
WAITING_SECONDS = 0.0001  # between looks for notes, once this rank's gradient is ready
COMPUTING_SECONDS = 0.001  # and while the rank still computes, when looking costs it time


class Backup:
    """Waits for all but `n_backup` ranks; for all of them after an update for which `waits_for_all` is true."""

    equal_weights = True

    def __init__(self, config: Comm, around: Surroundings) -> None:
        ranks = around.transport.size
        self._timings = around.timings
        self._notes = around.transport.duplicate()
        own = around._replace(transport=around.transport.duplicate(), timings=Timings())  # the thread's
        self._allreduce = AllReduce(config, own)
        self._n_backup = min(config.n_backup, ranks - 1)  # fewer ranks may be left than were configured
        self._waits_for_all = around.waits_for_all
        self._first = around.clock.updates
        self._arrived: list[int] = []  # coordinator: ranks with a gradient for the current weights, in their order
        self._change = threading.Condition()  # guards what follows
        self._pending: tuple[Gradient, dict[str, float]] | None = None
        self._announced = False
        self._finished: list[Update] = []  # not yet returned to the main thread
        self._stop: Stop = lambda: False
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="communication")
        self._thread.start()

    def update(self, gradient: Gradient | None, stop: Stop) -> list[Update]:
        """Return the updates since the last call, at least one; a gradient for older weights is dropped."""
        with self._timings.measure("wait"), self._change:
            self._stop = stop
            if gradient is not None and gradient.version == self._number and not self._finished:
                self._pending = gradient, self._allreduce.figures_of(gradient)
                self._announced = False
                self._change.notify_all()
            self._change.wait_for(lambda: self._finished or self._error or not self._thread.is_alive())
            if self._error is not None and not self._finished:
                raise self._error
            updates, self._finished = self._finished, []
        self._allreduce.resume_computing()
        return updates

    def close(self) -> None:
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join()

    @property
    def _number(self) -> int:
        """The number of the newest update."""
        return self._allreduce.clock.updates

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
        """Announce, coordinate, join; return whether to continue."""
        with self._change:
            if self._closing:
                return False
            if self._pending is not None and not self._announced:
                self._announced = True
                self._notes.send(0, self._number, READY)
        participants = self._coordinate() if self._notes.rank == 0 else self._go_note()
        if participants is not None:
            return self._join(participants)
        with self._change:
            self._change.wait(WAITING_SECONDS if self._announced else COMPUTING_SECONDS)
        return True

    def _go_note(self) -> list[int] | None:
        """The participants that the coordinator has named, if it has."""
        note = self._notes.receive(GO)
        return None if note is None else note[1]

    def _quorum(self) -> int:
        """All ranks at first, as no rank knows the message's columns yet, and where the ranks do something together."""
        ranks = self._notes.size
        return ranks if self._number == self._first or self._waits_for_all(self._number) else ranks - self._n_backup

    def _coordinate(self) -> list[int] | None:
        """Collect the ranks' notes; at the quorum tell all ranks who takes part."""
        while (note := self._notes.receive(READY)) is not None:
            rank, number = note
            if number == self._number:  # others are late
                self._arrived.append(rank)
        if len(self._arrived) < self._quorum():
            return None
        participants, self._arrived = self._arrived[: self._quorum()], []
        for rank in range(1, self._notes.size):
            self._notes.send(rank, participants, GO)
        return participants

    def _join(self, participants: list[int]) -> bool:
        """Take part in one update, with a gradient or without; return whether another may follow."""
        with self._change:
            self._write(participants)
        self._allreduce.sum()
        with self._change:
            self._pending = None  # what was not in time is dropped
            self._announced = False
            update = self._allreduce.apply()
            self._finished.append(update)
            self._change.notify_all()
        clock = self._allreduce.clock
        return not update.stop and clock.steps < clock.total_steps

    def _write(self, participants: list[int]) -> None:
        """Write this rank's part of the message."""
        rank = self._notes.rank
        if rank in participants:
            assert self._pending is not None
            gradient, by_rank = self._pending
            place = {"late": 0.0, "place": float(participants.index(rank))}
            self._allreduce.message.write(gradient, by_rank | place, self._stop())
        else:
            place = {"late": 1.0, "place": float(len(participants))}
            self._allreduce.message.write_nothing(place, self._stop())
