"""The loop: batch → gradient → update. It yields what happened; checkpoints, evaluation, metrics are its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from dba3c.types import Communicator, Gradient, Player, Progress, SupportsBool, Timings, Update

if TYPE_CHECKING:  # needs TensorFlow, which the loop itself does not
    from dba3c.learning.agent import Agent


def train(
    player: Player,
    agent: Agent,
    communicator: Communicator,
    progress: Progress,
    total_steps: int,
    stop: SupportsBool,
    timings: Timings,
) -> Iterator[Update]:
    """Learn until `total_steps` or until some rank is asked to stop."""
    while progress.steps < total_steps:
        batch = next(player)
        done = progress.steps / total_steps
        gradients = agent.gradients(batch, progress.advantage_scale, done) if batch is not None else iter((None,))
        for gradient in timed(gradients, timings):
            if gradient is not None:
                gradient.sums.update(timings.drain())
            for update in communicator.update(gradient, stop):
                progress.count(update)
                yield update
                if update.stop or progress.steps >= total_steps:
                    return


def timed(gradients: Iterator[Gradient | None], timings: Timings) -> Iterator[Gradient | None]:
    """The same gradients, and the time that they take."""
    end = object()
    while True:
        with timings.measure("gradient"):
            gradient = next(gradients, end)
        if gradient is end:
            return
        yield cast(Gradient | None, gradient)
