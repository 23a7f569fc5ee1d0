"""python -m tests.short_stragglers SECONDS FILE: benchmarks.stragglers with pauses of half a second, not of five."""

from __future__ import annotations

import runpy

from dba3c.benchmarks import emulated_ranks
from dba3c.benchmarks.emulated_ranks import Observed, Pattern
from dba3c.benchmarks.timed_ranks import MpiComm

observe_as_published = emulated_ranks.observe


def observe(comm: MpiComm, pattern: Pattern, n_backup: int, seconds: float, parameters: int) -> Observed:
    if pattern.pause:  # begins after two seconds
        pattern, seconds = pattern._replace(pause=0.5), 3.0
    return observe_as_published(comm, pattern, n_backup, seconds, parameters)


if __name__ == "__main__":
    emulated_ranks.observe = observe
    runpy.run_module("dba3c.benchmarks.stragglers", run_name="__main__", alter_sys=True)
