"""python -m tests.end_to_end.short_stragglers SECONDS FILE: the benchmark of stragglers, with pauses of only 0.5 s."""

from __future__ import annotations

import runpy

from mpi4py import MPI

from dba3c.benchmarks import emulated_ranks
from dba3c.benchmarks.emulated_ranks import Observed, Pattern, Way

observe_as_published = emulated_ranks.observe


def observe(comm: MPI.Intracomm, pattern: Pattern, way: Way, seconds: float, parameters: int) -> Observed:
    if pattern.pause:  # begins after two seconds
        pattern, seconds = pattern._replace(pause=0.5), 3.0
    return observe_as_published(comm, pattern, way, seconds, parameters)


if __name__ == "__main__":
    emulated_ranks.observe = observe
    runpy.run_module("dba3c.benchmarks.stragglers", run_name="__main__", alter_sys=True)
