"""Where the time of a rank goes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

# Of a rank's time. play: waiting for an async actor; sample: keeping experience, and drawing from it.
PARTS = ("env", "predict", "play", "sample", "gradient", "wait", "apply")


class Timings:
    """Seconds spent per named part, and how often simulators were rebuilt, since the last `drain`.

    `delay` is called at the end of each part with its name and its seconds so far: experiments sleep there.
    """

    def __init__(self, delay: Callable[[str, float], None] = lambda _part, _seconds: None) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.rebuilt = 0
        self._delay = delay

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
            self._delay(part, time.perf_counter() - start)
        finally:
            self.seconds[part] += time.perf_counter() - start

    def twin(self) -> Timings:
        """Make timings of a thread of its own, with the same delays."""
        return Timings(self._delay)

    def add_mean(self, others: Sequence[Timings]) -> None:
        """Add what threads have spent that work at the same time: the mean of their seconds."""
        for other in others:
            spent, other.seconds = other.seconds, defaultdict(float)
            for part, seconds in spent.items():
                self.seconds[part] += seconds / len(others)

    def drain(self) -> dict[str, float]:
        drained, self.seconds = self.seconds, defaultdict(float)
        rebuilt, self.rebuilt = self.rebuilt, 0
        return {f"{part}_seconds": drained[part] for part in PARTS} | {"rebuilt": float(rebuilt)}
