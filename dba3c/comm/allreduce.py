"""The synchronous strategy: one all-reduce per update carries everything, then every rank applies the same mean."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from dba3c.comm.message import Message
from dba3c.config.schema import Comm
from dba3c.types import Gradient, Optimizer, Progress, SupportsBool, Timings, Transport, Update


class Parts(NamedTuple):
    """What a strategy works with."""

    transport: Transport
    optimizer: Optimizer
    timings: Timings
    progress: Progress  # where it goes on
    total_steps: int
    applied: Callable[[int], None] = lambda _: None  # told the number of each update once its weights are there
    everyone: Callable[[int], bool] = lambda _: False  # nobody may be left behind by the update after this one


class AllReduce:
    """Waits for every rank's gradient."""

    def __init__(self, _config: Comm, parts: Parts) -> None:
        self._transport, self._optimizer, self._timings = parts.transport, parts.optimizer, parts.timings
        self._number, self._steps, self._total_steps = parts.progress.updates, parts.progress.steps, parts.total_steps
        self._applied = parts.applied
        self._message = Message(self._transport.rank, self._transport.size)
        self._ready = time.perf_counter()  # since when this rank computes

    def update(self, gradient: Gradient | None, stop: SupportsBool) -> list[Update]:
        assert gradient is not None, "no update passes this rank by"
        own = self._own_figures(gradient)
        with self._timings.measure("wait"):
            self._message.write(gradient, own, bool(stop))
            self._transport.sum(self._message.vector)
        update = self._apply()
        self._ready = time.perf_counter()
        return [update]

    def close(self) -> None: ...

    def _own_figures(self, gradient: Gradient) -> dict[str, float]:
        return gradient.own | {"compute_seconds": time.perf_counter() - self._ready}

    def _apply(self) -> Update:
        """The update that the summed message describes."""
        update = self._message.read(self._number + 1)
        if update.applied:
            with self._timings.measure("apply"):
                self._optimizer.apply(self._message.mean(update.samples), self._steps / self._total_steps)
        self._number, self._steps = update.number, self._steps + update.steps
        self._applied(update.number)
        return update
