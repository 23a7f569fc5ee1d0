"""The loop: batch → gradient → update. It yields what happened; checkpoints, evaluation, metrics are its consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from dba3c.agent import Agent
from dba3c.flat import weight_hash
from dba3c.types import Communicator, Player, Progress, Timings, Transport, Update


class TrainingError(Exception):
    """Training cannot go on; the message says why."""


class SupportsBool(Protocol):
    def __bool__(self) -> bool: ...


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
        with timings.measure("gradient"):
            gradient = agent.gradient(batch)
        gradient.sums.update(timings.drain())
        update = communicator.update(gradient, progress.steps / total_steps, bool(stop))
        progress.count(update)
        agent.version = progress.updates
        yield update
        if update.stop:
            return


def check_weights(agent: Agent, transport: Transport, update: int) -> None:
    """Stop the job if the ranks' weights differ, naming those that differ from the majority."""
    hashes = transport.gather(weight_hash(agent.weights.numpy()))
    common = Counter(hashes).most_common(1)[0][0]
    strangers = [rank for rank, value in enumerate(hashes) if value != common]
    if strangers:
        raise TrainingError(f"after update {update} the weights of ranks {strangers} differ from the others': {hashes}")
