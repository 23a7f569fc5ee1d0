"""python -m tests.faulty_train FAULT [train options]: the real trainer with one thing broken on the last rank."""

from __future__ import annotations

import os
import sys
from typing import Any

from dba3c import launch, train


def break_gradient(first: int, last: int) -> None:
    """NaN in the gradients of the updates from `first` to `last`."""
    from dba3c.agent import Agent

    honest = Agent.gradients

    def gradients(self: Agent, batch: Any, advantage_scale: float = 1.0) -> Any:
        for result in honest(self, batch, advantage_scale):
            bad = first <= self.version + 1 <= last
            yield result._replace(mean=result.mean * float("nan")) if bad else result

    Agent.gradients = gradients  # type: ignore[method-assign]


def break_env() -> None:
    """A simulator that throws in its tenth step."""
    from dba3c.envs import DeepMindEnv

    honest, steps = DeepMindEnv.step, iter(range(10**6))

    def step(self: DeepMindEnv, actions: Any) -> Any:
        if next(steps) == 10:
            raise RuntimeError("the emulator is on fire")
        return honest(self, actions)

    DeepMindEnv.step = step  # type: ignore[method-assign]


def break_weights() -> None:
    """One weight that drifts away in the tenth update."""
    from dba3c.optimizers import FlatOptimizer

    honest = FlatOptimizer.apply

    def apply(self: FlatOptimizer, gradient: Any, progress: float) -> None:
        honest(self, gradient, progress)
        if self._steps == 10:
            self._weights.assign(self._weights + 1e-6)

    FlatOptimizer.apply = apply  # type: ignore[method-assign]


FAULTS = {
    "exception": break_env,
    "one-nan": lambda: break_gradient(3, 3),
    "always-nan": lambda: break_gradient(8, 10**9),
    "drift": break_weights,
}


def main(fault: str, argv: list[str]) -> int:
    load = launch.load_tensorflow

    def load_and_break(threads: int) -> None:
        load(threads)
        ranks, rank = int(os.environ["OMPI_COMM_WORLD_SIZE"]), int(os.environ["OMPI_COMM_WORLD_RANK"])
        if rank == ranks - 1:
            FAULTS[fault]()

    launch.load_tensorflow = load_and_break
    return train.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
