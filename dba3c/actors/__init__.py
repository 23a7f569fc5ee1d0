"""What plays: simulators and a policy become batches of segments."""

from __future__ import annotations

from collections.abc import Callable

from dba3c.types import VectorEnv

MakeSimulators = Callable[[int, int, int], VectorEnv]  # first number in the whole job, how many, threads to step them
