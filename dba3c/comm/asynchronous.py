"""Asynchronous training: each rank applies its own gradient, to weights that change at any time.

The clerk, a thread on rank 0, numbers the updates; a store has the weights (server.py, hogwild.py). No rank waits for
another one but to be served. Where the ranks meet (to evaluate, to save, at the end) all take over the same state.

    rank r:  header ──► clerk (rank 0) ── ticket: number, news ──► rank r
             gradient ──► store ── new weights ──► rank r
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dba3c.comm.allreduce import Surroundings
from dba3c.comm.clerk import Answers, Clerk, Header, Ticket
from dba3c.config.schema import Comm
from dba3c.types import Array, Clock, Gradient, Stop, Transport, Update

CLERK, PUSH, PULL, WHOLE, GRADIENT = range(1, 6)  # tags of what a thread serves
TICKET, WEIGHTS, STATE = range(6, 9)  # tags of its answers
WAITING, STOP, ARRIVED = range(3)  # what ranks tell the clerk besides headers: with one tag, as their order counts
SERVICE_SECONDS = 0.0002  # between looks for something to serve: each look costs the rank's own computing 5 µs
ANSWER_SECONDS = 0.00005  # and for an answer that this rank waits for
NEWS_SECONDS = 1.0  # after which ranks that do not play hear of what the others did; rank 0 shows it

Handler = Callable[[int, Any], None]  # rank, note


class Push(NamedTuple):
    """What is said about a gradient that is to be applied."""

    clock: Clock  # before the update
    applied: int  # optimizer steps before it
    group: tuple[int, ...]
    samples: int
    scale: float  # that clips it


class Store(Protocol):
    """Where the weights and the slots of the optimizer are."""

    handlers: dict[int, Handler]  # what this rank serves, by tag

    def push(self, note: Push, gradient: Array) -> Array: ...  # apply it; -> the newest weights
    def pull(self) -> Array: ...  # -> the newest weights
    def whole(self, applied: int) -> tuple[Array, dict[str, Array]]: ...  # weights and slots after as many steps


MakeStore = Callable[[Surroundings, "Mail"], Store]


class Mail:
    """Requests to the threads that serve, and their answers to the main threads, in communicators of their own."""

    def __init__(self, transport: Transport) -> None:
        self.requests = transport.duplicate()
        self.answers = transport.duplicate()
        self.error: BaseException | None = None  # of the thread of this rank

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait for an answer; waiting in MPI itself would take the core from the threads that serve."""
        while not done():
            if self.error is not None:
                raise self.error
            time.sleep(ANSWER_SECONDS)

    def take(self, tag: int) -> Any:
        """Wait for a note of any rank."""
        notes: list[tuple[int, Any]] = []

        def arrived() -> bool:
            note = self.answers.receive(tag)
            notes.extend([] if note is None else [note])
            return note is not None

        self.wait_for(arrived)
        return notes[0][1]

    def collect(self, arrays: Iterable[tuple[int, Array]], tag: int) -> None:
        """Wait until an array from each rank is there."""
        for arrived in [self.answers.receive_array(rank, array, tag) for rank, array in arrays]:
            self.wait_for(arrived)


class Asynchronous:
    """Applies each gradient at once; the ranks' weights are equal only where they meet."""

    equal_weights = False

    def __init__(self, config: Comm, around: Surroundings, make_store: MakeStore) -> None:
        self._transport = around.transport
        self._optimizer = around.optimizer
        self._timings = around.timings
        self._follow = around.follow
        self._clock = around.clock
        self._computing_since = time.perf_counter()
        self._mail = Mail(around.transport)
        self._store = make_store(around, self._mail)
        clerk = None
        if self._transport.rank == 0:
            applied = int(self._optimizer.state()["steps"])
            players = self._transport.size - len(around.idle)
            aggregate = min(config.aggregate, players)  # some that were to play may have failed
            rules = meets_after(around), aggregate, config.max_staleness
            clerk = Clerk(self._transport.size, around.clock, applied, *rules)
        self._service = Service(self._mail, self._store.handlers, clerk)

    def update(self, gradient: Gradient | None, stop: Stop) -> list[Update]:
        """Apply a gradient, or wait for news where there is none; return what all ranks did since the last call."""
        with self._timings.measure("wait"):
            ticket = self._wait_for_news(stop) if gradient is None else self._ask(gradient, stop())
            weights = None
            if gradient is not None and self._transport.rank in ticket.group:
                mean = weighted(gradient)
                rest = ticket.group, gradient.samples, self._optimizer.scale(mean)
                weights = self._store.push(Push(ticket.clock, ticket.applied - 1, *rest), mean)
            if ticket.meet:
                weights, state = self._store.whole(ticket.applied)
                self._optimizer.restore(state)
                self._mail.requests.send(0, ARRIVED, CLERK)
            self._optimizer.load(self._store.pull() if weights is None else weights)
        for update in ticket.news:
            steps = self._clock.steps + update.steps
            self._clock = self._clock._replace(updates=update.number, steps=steps)
            self._follow(update, self._clock)
        self._computing_since = time.perf_counter()
        return ticket.news

    def close(self) -> None:
        self._service.close()

    def _ask(self, gradient: Gradient, stop: bool) -> Ticket:
        self._mail.requests.send(0, self._header(gradient, stop), CLERK)
        ticket: Ticket = self._mail.take(TICKET)
        return ticket

    def _header(self, gradient: Gradient, stop: bool) -> Header:
        finite = bool(np.isfinite(np.dot(gradient.mean, gradient.mean)))
        sums = {name: float(np.nan_to_num(value, posinf=0.0, neginf=0.0)) for name, value in gradient.sums.items()}
        by_rank = gradient.by_rank | {"compute_seconds": time.perf_counter() - self._computing_since}
        samples, steps = (gradient.samples, gradient.steps) if finite else (0, 0)
        return Header(samples, steps, gradient.version, finite, stop, sums, by_rank)

    def _wait_for_news(self, stop: Stop) -> Ticket:
        """Wait on a rank without simulators until the clerk reports what the others did."""
        self._mail.requests.send(0, WAITING, CLERK)
        notes: list[tuple[int, Ticket]] = []
        asked = False
        while not notes:
            if stop() and not asked:
                asked = True
                self._mail.requests.send(0, STOP, CLERK)
            note = self._mail.answers.receive(TICKET)
            notes.extend([] if note is None else [note])
            if self._mail.error is not None:
                raise self._mail.error
            time.sleep(SERVICE_SECONDS)
        return notes[0][1]


def meets_after(around: Surroundings) -> Callable[[int], bool]:
    """Say whether the ranks meet after an update: they know of some beforehand, and rank 0 may call for another."""
    return lambda number: around.waits_for_all(number) or around.calls_meeting()


def weighted(gradient: Gradient) -> Array:
    """Round the gradient as the all-reduce does, which multiplies it by its samples and divides by all ranks'."""
    samples = np.float32(gradient.samples)
    return np.asarray(gradient.mean * samples / samples)


class Service:
    """The thread that serves other ranks, where there is something to serve."""

    def __init__(self, mail: Mail, handlers: dict[int, Handler], clerk: Clerk | None) -> None:
        self._mail = mail
        self._handlers = dict(handlers)
        self._clerk = clerk
        self._told = time.monotonic()
        self._closing = threading.Event()
        if clerk is not None:
            self._handlers[CLERK] = lambda rank, note: self._answer(ask(clerk, rank, note))
        self._thread = threading.Thread(target=self._serve, daemon=True, name="service")
        if self._handlers:
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._handlers:
            self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                if not self._serve_once():
                    time.sleep(SERVICE_SECONDS)
        except BaseException as error:  # reaches the main thread, which waits for answers
            self._mail.error = error

    def _serve_once(self) -> bool:
        """Serve what has arrived; return whether there was something."""
        served = False
        for tag, handle in self._handlers.items():
            while (note := self._mail.requests.receive(tag)) is not None:
                handle(*note)
                served = True
        if self._clerk is not None and time.monotonic() - self._told > NEWS_SECONDS:
            self._told = time.monotonic()
            self._answer(self._clerk.tell())
        return served

    def _answer(self, answers: Answers) -> None:
        for rank, ticket in answers:
            self._mail.answers.send(rank, ticket, TICKET)


def ask(clerk: Clerk, rank: int, note: Header | int) -> Answers:
    """Put a rank's note to the clerk."""
    if isinstance(note, Header):
        return clerk.take(rank, note)
    return {WAITING: clerk.wait, STOP: clerk.stop, ARRIVED: clerk.arrive}[note](rank)
