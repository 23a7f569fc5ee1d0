"""Stragglers on purpose: ranks that compute longer than they need to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dba3c.sections import Debug
from dba3c.types import Timings

COMPUTING = ("env", "predict", "gradient")


def pair(text: str) -> tuple[float, float] | None:
    """`3,2.5` as two numbers; None for `none`."""
    first, comma, second = text.partition(",")
    return (float(first), float(second)) if comma else None


def timings(config: Debug, rank: int) -> Timings:
    """Timings of an honest rank, or of one that is slowed down."""
    slow, delays = pair(config.slow_rank), pair(config.delays)
    factor = slow[1] if slow is not None and slow[0] == rank else 1.0
    return Timings() if factor == 1.0 and delays is None else Straggler(factor, delays or (0.0, 1.0), rank)


class Straggler(Timings):
    """Sleeps after each piece of computing until it has taken as long as it should."""

    def __init__(self, factor: float, delays: tuple[float, float], rank: int) -> None:
        super().__init__()
        self._factor, (self._probability, self._delay) = factor, delays
        self._random = np.random.default_rng(rank)

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        with super().measure(part):
            yield
            if part in COMPUTING:
                time.sleep((self._draw_factor(part) - 1) * (time.perf_counter() - start))

    def _draw_factor(self, part: str) -> float:
        late = part == "env" and self._random.random() < self._probability
        return max(1.0, self._factor * (self._delay if late else 1.0))
