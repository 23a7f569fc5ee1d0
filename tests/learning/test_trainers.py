"""Trainers: gradients of several batches at the same time, in the order of the batches, none later than promised."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from dba3c.learning.shards import Trainers
from dba3c.types import Batch, Gradient
from tests.fakes.batches import batch_of

PATIENCE = 30.0


class Learner:
    """Computes nothing; notes with which weights, and lets as many threads meet as there should be."""

    def __init__(self, meeting: int = 1) -> None:
        self.version = 0
        self._meeting = threading.Barrier(meeting, timeout=PATIENCE)

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        version = self.version
        self._meeting.wait()
        if batch.rewards[0, 0] < 0:
            raise ValueError("the gradient broke")
        yield Gradient(batch.rewards[0, :1], batch.samples, batch.steps, version, {"loss": 1.0}, {"max_lag": 0.0})


def learn(agent: Learner, crew: dict[str, int], batches: range) -> list[Gradient]:
    """Take the gradients of numbered batches; each is an update."""
    trainers = Trainers(agent, lambda: crew, 4)
    found = []
    for number in batches:
        rewards = np.full((1, 4), number, np.float32)
        for gradient in trainers.gradients(batch_of(1, 4, rewards=rewards)):
            found.append(gradient)
            agent.version += 1
    return found


def test_one_trainer_learns_from_each_batch_at_once() -> None:
    found = learn(Learner(), {"trainers": 1}, range(5))
    assert [gradient.mean[0] for gradient in found] == [0, 1, 2, 3, 4]
    assert [gradient.by_rank["staleness"] for gradient in found] == [0.0] * 5


def test_gradients_come_in_order_and_are_as_late_as_there_are_more_trainers() -> None:
    found = learn(Learner(), {"agents": 7, "trainers": 3}, range(10))
    assert [gradient.mean[0] for gradient in found] == [0, 1, 2, 3, 4, 5, 6, 7]  # two are on their way
    late = [gradient.by_rank["staleness"] for gradient in found]
    assert late[:3] == [0.0, 1.0, 2.0]
    assert max(late) <= 2.0
    assert found[2].sums["staleness"] == 4 * 2.0
    assert (found[0].by_rank["agents"], found[0].by_rank["trainers"]) == (7.0, 3.0)


def test_as_many_gradients_are_computed_at_the_same_time() -> None:
    """Each waits until two others are being computed, too."""
    assert len(learn(Learner(meeting=3), {"trainers": 3}, range(3))) == 1


def test_trainers_come_and_go() -> None:
    agent, crew = Learner(), {"trainers": 3}
    trainers = Trainers(agent, lambda: crew, 4)
    taken = [len(list(trainers.gradients(batch_of(1, 4)))) for _ in range(4)]
    crew["trainers"] = 1
    taken.append(len(list(trainers.gradients(batch_of(1, 4)))))
    assert taken == [0, 0, 1, 1, 3]


def test_a_trainer_that_fails_fails_the_learner() -> None:
    with pytest.raises(ValueError, match="gradient broke"):
        learn(Learner(), {"trainers": 2}, range(-1, 3))
