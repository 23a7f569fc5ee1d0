"""The one message of an update: everything that ranks say to each other, in one float32 vector that can be added up."""

from __future__ import annotations

import numpy as np

from dba3c.types import Array, Gradient, Update

HEADER = ("samples", "steps")


class Message:
    """[ samples × mean gradient | header | sums | moments | a slot per rank and figure that is kept apart ]"""

    def __init__(self, rank: int, ranks: int) -> None:
        self._rank = rank
        self._ranks = ranks
        self._parameters = 0
        self._sums: list[str] = []
        self._moments = 0
        self._by_rank: list[str] = []
        self.vector = np.empty(0, np.float32)

    def write(self, gradient: Gradient, by_rank: dict[str, float], stop: bool) -> None:
        """Write this rank's part; a gradient that is not finite stays out of the sum and is counted instead."""
        finite = bool(np.isfinite(np.dot(gradient.mean, gradient.mean)))
        by_rank = by_rank | {"not_finite": float(not finite), "stop": float(stop)}
        self._parameters = gradient.mean.size
        self._sums = list(gradient.sums)
        self._moments = gradient.moments.size
        self._by_rank = list(by_rank)
        samples, steps = (gradient.samples, gradient.steps) if finite else (0, 0)
        sums = np.nan_to_num(list(gradient.sums.values()), nan=0.0, posinf=0.0, neginf=0.0)
        length = gradient.mean.size + len(HEADER) + len(sums) + self._moments + len(by_rank) * self._ranks
        if self.vector.size != length:
            self.vector = np.empty(length, np.float32)
        weighted, tail = np.split(self.vector, [self._parameters])
        np.multiply(gradient.mean if finite else 0.0, np.float32(samples), out=weighted)
        tail[:] = 0.0
        tail[: len(HEADER)] = samples, steps
        tail[len(HEADER) : len(HEADER) + len(sums)] = sums
        tail[self._where_moments] = gradient.moments
        self._slots()[:, self._rank] = list(by_rank.values())

    def write_nothing(self, by_rank: dict[str, float], stop: bool) -> None:
        """Write the part of a rank that has no gradient, after some update in which it had one."""
        self.vector[:] = 0.0
        by_rank = by_rank | {"stop": float(stop)}
        self._slots()[:, self._rank] = [by_rank.get(name, 0.0) for name in self._by_rank]

    def read(self, number: int) -> Update:
        """Say what the summed message means."""
        tail = self.vector[self._parameters :]
        samples, steps = (float(x) for x in tail[: len(HEADER)])
        sums = tail[len(HEADER) : len(HEADER) + len(self._sums)]
        by_rank = dict(zip(self._by_rank, self._slots().copy(), strict=True))
        return Update(
            number=number,
            samples=round(samples),
            steps=round(steps),
            skipped=bool(by_rank["not_finite"].any()),
            stop=bool(by_rank["stop"].any()),
            sums={name: float(value) for name, value in zip(self._sums, sums, strict=True)},
            by_rank=by_rank,
            moments=tail[self._where_moments].copy(),
        )

    @property
    def _where_moments(self) -> slice:
        start = len(HEADER) + len(self._sums)
        return slice(start, start + self._moments)

    def mean(self, samples: int) -> Array:
        """Take the gradient of the mean loss over all ranks' samples from the summed message."""
        return self.vector[: self._parameters] / np.float32(max(samples, 1))

    def _slots(self) -> Array:
        """View the end of the message as [figures, ranks]."""
        figures = len(self._by_rank)
        return self.vector[self.vector.size - figures * self._ranks :].reshape(figures, self._ranks)
