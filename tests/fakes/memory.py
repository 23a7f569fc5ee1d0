"""How much memory something takes."""

from __future__ import annotations

import resource
import tracemalloc
from collections.abc import Callable


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once while `work` ran, NumPy's arrays included."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def most_memory() -> int:
    """Return the most bytes that this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
