"""Gradients in shards: those of the undivided batch up to rounding, and the same bits on any number of cores."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dba3c.types import Gradient
from tests.learning.test_agent import PPO, agent_of, batch

MEMORY = ("env.n_sim=4",)
CLIPPED = ("env.n_sim=4", "algorithm.clip=tensor", "algorithm.clip_norm=1e-4")


def gradients(shards: int, *more: str) -> list[Gradient]:
    return list(agent_of(*more, f"actor.shards={shards}").gradients(batch()))


@pytest.mark.parametrize("more", [MEMORY, CLIPPED, PPO], ids=["a3c", "clipped", "ppo"])
@pytest.mark.parametrize("shards", [2, 4])
def test_shards_add_up_to_the_whole(shards: int, more: tuple[str, ...]) -> None:
    for whole, divided in zip(gradients(1, *more), gradients(shards, *more), strict=True):
        largest = np.abs(whole.mean).max()
        np.testing.assert_allclose(divided.mean, whole.mean, rtol=0, atol=1e-5 * largest)
        assert divided.sums == pytest.approx(whole.sums, rel=1e-4, abs=1e-5)
        assert divided[1:4] == whole[1:4]  # samples, steps, version


def test_uneven_shards_count_by_their_samples() -> None:
    """Four simulators in three shards: no configuration has it, but minibatches of simulators may be cut so."""
    agent = agent_of(*MEMORY, "actor.shards=2")
    agent._shards.count = 3
    try:
        divided = next(agent.gradients(batch()))
    finally:
        agent._shards.count = 2
    whole = gradients(1, *MEMORY)[0]
    np.testing.assert_allclose(divided.mean, whole.mean, rtol=0, atol=1e-5 * np.abs(whole.mean).max())


def test_the_number_of_cores_does_not_change_a_bit() -> None:
    cores = os.sched_getaffinity(0)
    many = gradients(4, *MEMORY)[0]
    os.sched_setaffinity(0, {min(cores)})  # threads that exist already keep theirs, so this mixes both
    try:
        few = gradients(4, *MEMORY)[0]
    finally:
        os.sched_setaffinity(0, cores)
    assert few.mean.tobytes() == many.mean.tobytes()
    assert few.sums == many.sums
