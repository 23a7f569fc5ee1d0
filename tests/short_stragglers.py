"""python -m tests.short_stragglers SECONDS FILE: dba3c.bench.stragglers with pauses of half a second, not of five."""

from __future__ import annotations

import runpy
from typing import Any

from dba3c.bench import emulation
from dba3c.bench.emulation import Pace, Pattern

honest = emulation.measure


def measure(comm: Any, pattern: Pattern, n_backup: int, seconds: float, parameters: int) -> Pace:
    if pattern.pause:  # begins after two seconds
        pattern, seconds = pattern._replace(pause=0.5), 3.0
    return honest(comm, pattern, n_backup, seconds, parameters)


if __name__ == "__main__":
    emulation.measure = measure
    runpy.run_module("dba3c.bench.stragglers", run_name="__main__", alter_sys=True)
