"""The loop: batch → gradient → update. It yields what happened; checkpoints, evaluation, metrics are its consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

from dba3c.agent import Agent
from dba3c.flat import weight_hash
from dba3c.types import Communicator, Gradient, Player, Progress, SupportsBool, Timings, Transport, Update


class TrainingError(Exception):
    """Training cannot go on; the message says why."""


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
        gradients = agent.gradients(batch, progress.advantage_scale) if batch is not None else iter((None,))
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


def check_weights(agent: Agent, transport: Transport, update: int) -> None:
    """Stop the job if the ranks' weights differ, naming those that differ from the majority."""
    hashes = transport.gather(weight_hash(agent.weights.numpy()))
    common = Counter(hashes).most_common(1)[0][0]
    strangers = [rank for rank, value in enumerate(hashes) if value != common]
    if strangers:
        raise TrainingError(f"after update {update} the weights of ranks {strangers} differ from the others': {hashes}")
