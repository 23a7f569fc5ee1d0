"""The synchronous strategy: one all-reduce per update carries everything, then every rank applies the same mean."""

from __future__ import annotations

import time

import numpy as np

from dba3c.types import Array, Gradient, Optimizer, Timings, Transport, Update

HEADER = ("samples", "not_finite", "stop")


class AllReduce:
    """Adds up [ samples × mean gradient | header | sums | a slot per rank and own figure ] over all ranks."""

    def __init__(self, transport: Transport, optimizer: Optimizer, timings: Timings, number: int = 0) -> None:
        self._transport, self._optimizer, self._timings = transport, optimizer, timings
        self._buffer = np.empty(0, np.float32)
        self._ready = time.perf_counter()  # since when this rank computes
        self.number = number

    def update(self, gradient: Gradient, progress: float, stop: bool) -> Update:
        own = gradient.own | {"compute_seconds": time.perf_counter() - self._ready}
        with self._timings.measure("wait"):
            self._write(gradient, own, stop)
            self._transport.sum(self._buffer)
        update = self._read(gradient, own)
        if update.applied:
            with self._timings.measure("apply"):
                mean = self._buffer[: gradient.mean.size] / np.float32(max(update.samples, 1))
                self._optimizer.apply(mean, progress)
        self._ready = time.perf_counter()
        return update

    def _write(self, gradient: Gradient, own: dict[str, float], stop: bool) -> None:
        """Lay out this rank's part; a gradient that is not finite stays out of the sum and is counted instead."""
        finite = bool(np.isfinite(np.dot(gradient.mean, gradient.mean)))
        samples = gradient.samples if finite else 0
        sums = np.nan_to_num(list(gradient.sums.values()), nan=0.0, posinf=0.0, neginf=0.0)
        length = gradient.mean.size + len(HEADER) + len(sums) + len(own) * self._transport.size
        if self._buffer.size != length:
            self._buffer = np.empty(length, np.float32)
        vector, tail = np.split(self._buffer, [gradient.mean.size])
        np.multiply(gradient.mean if finite else 0.0, np.float32(samples), out=vector)
        tail[:] = 0.0
        tail[: len(HEADER)] = samples, not finite, stop
        tail[len(HEADER) : len(HEADER) + len(sums)] = sums
        self._slots(tail, len(own))[:, self._transport.rank] = list(own.values())

    def _read(self, gradient: Gradient, own: dict[str, float]) -> Update:
        tail = self._buffer[gradient.mean.size :]
        samples, not_finite, stop = (float(x) for x in tail[: len(HEADER)])
        sums = tail[len(HEADER) : len(HEADER) + len(gradient.sums)]
        slots = self._slots(tail, len(own)).copy()
        self.number += 1
        return Update(
            number=self.number,
            samples=round(samples),
            applied=not_finite == 0,
            stop=stop > 0,
            sums={name: float(value) for name, value in zip(gradient.sums, sums, strict=True)}
            | {"not_finite": not_finite},
            by_rank=dict(zip(own, slots, strict=True)),
        )

    def _slots(self, tail: Array, figures: int) -> Array:
        """The end of the message as [own figures, ranks]."""
        return tail[tail.size - figures * self._transport.size :].reshape(figures, self._transport.size)
