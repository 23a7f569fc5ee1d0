"""The synchronous strategy: one all-reduce per update carries everything, then every rank applies the same mean."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from dba3c.comm.message import Message
from dba3c.config.schema import Comm
from dba3c.timings import Timings
from dba3c.types import Clock, Gradient, Optimizer, Stop, Transport, Update


class Surroundings(NamedTuple):
    """What a strategy works with."""

    transport: Transport
    optimizer: Optimizer
    timings: Timings
    clock: Clock  # at the start
    follow: Callable[[Update, Clock], None] = lambda *_: None  # called after each update, once its weights are there
    waits_for_all: Callable[[int], bool] = lambda _: False  # whether the update after this one waits for every rank
    owners: tuple[int, ...] = ()  # ranks that own slices of the weights, where not all hold all of them
    idle: tuple[int, ...] = ()  # ranks without simulators
    calls_meeting: Callable[[], bool] = lambda: False  # whether all ranks shall meet after this update; asked on rank 0


class AllReduce:
    """Waits for every rank's gradient."""

    equal_weights = True

    def __init__(self, _config: Comm, around: Surroundings) -> None:
        self._transport = around.transport
        self._optimizer = around.optimizer
        self._timings = around.timings
        self._follow = around.follow
        self._computing_since = time.perf_counter()
        self.clock = around.clock
        self.message = Message(self._transport.rank, self._transport.size)

    def update(self, gradient: Gradient | None, stop: Stop) -> list[Update]:
        assert gradient is not None, "this strategy leaves no rank behind"
        by_rank = self.figures_of(gradient)
        with self._timings.measure("wait"):
            self.message.write(gradient, by_rank, stop())
            self.sum()
        update = self.apply()
        self.resume_computing()
        return [update]

    def close(self) -> None: ...

    def figures_of(self, gradient: Gradient) -> dict[str, float]:
        """The figures that are kept apart by rank, of a gradient that was just computed."""
        return gradient.by_rank | {"compute_seconds": time.perf_counter() - self._computing_since}

    def resume_computing(self) -> None:
        self._computing_since = time.perf_counter()

    def sum(self) -> None:
        """Add up the ranks' messages."""
        self._transport.sum(self.message.vector)

    def apply(self) -> Update:
        """Do the update that the summed message describes."""
        update = self.message.read(self.clock.updates + 1)
        if update.applied:
            with self._timings.measure("apply"):
                self._optimizer.apply(self.message.mean(update.samples), self.clock)
        self.clock = self.clock._replace(updates=update.number, steps=self.clock.steps + update.steps)
        self._follow(update, self.clock)
        return update
