"""The loop: batch → gradient → update. It yields what happened; between_updates.py holds what consumes that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.types import Actor, Batch, Episode, Gradient, Stop, Strategy, Update


class Learner(Protocol):
    """Turns batches into gradients."""

    def gradients(self, batch: Batch) -> Iterator[Gradient]: ...


def updates(
    actor: Actor,
    learner: Learner,
    strategy: Strategy,
    progress: Progress,
    total_steps: int,
    stop: Stop,
    timings: Timings,
) -> Iterator[Update]:
    """Learn until `total_steps` or until some rank is asked to stop."""
    while progress.steps < total_steps:
        for gradient in gradients(next(actor), learner, timings):
            for update in strategy.update(gradient, stop):
                progress.count(update)
                yield update
                if update.stop or progress.steps >= total_steps:
                    return


def gradients(batch: Batch | None, learner: Learner, timings: Timings) -> Iterator[Gradient | None]:
    """Take the gradients from a batch, with the figures of its play; None where new weights came in between."""
    if batch is None:
        yield None
        return
    computed = learner.gradients(batch)
    episodes = batch.episodes
    while True:
        with timings.measure("gradient"):
            gradient = next(computed, None)
        if gradient is None:
            return
        yield gradient._replace(sums=gradient.sums | episode_sums(episodes) | timings.drain())
        episodes = []  # are counted once, however many gradients follow


def episode_sums(episodes: list[Episode]) -> dict[str, float]:
    return {
        "episodes": float(len(episodes)),
        "score": sum(episode.score for episode in episodes),
        "episode_steps": float(sum(episode.steps for episode in episodes)),
    }
