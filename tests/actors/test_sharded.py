"""Shards of lockstep actors: together they play what one actor plays."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice

import numpy as np
import pytest

from dba3c.actors.lockstep import Lockstep
from dba3c.actors.segment import side_by_side
from dba3c.actors.sharded import Sharded
from dba3c.timings import Timings
from dba3c.types import BY_TIME, Array, Batch, Step
from tests.fakes.scripted_env import ScriptedPolicy, TapeEnv
from tests.fakes.settings import settings


def make(shards: int, simulators: int = 4, timings: Timings | None = None) -> tuple[Sharded, ScriptedPolicy]:
    config, policy = settings(f"env.n_sim={simulators}", "actor.n_steps=3"), ScriptedPolicy(None)
    size, spent = simulators // shards, [Timings() for _ in range(shards)]
    actors = [
        Lockstep(config, TapeEnv(size, number * size, None), policy, number * size, spent[number])
        for number in range(shards)
    ]
    return sharded(actors, timings or Timings(), spent), policy


def sharded(actors: list[Lockstep], timings: Timings, spent: list[Timings]) -> Sharded:
    return Sharded(actors, side_by_side([actor.segment for actor in actors]), timings, spent)


def take(actor: Sharded, count: int) -> list[Batch]:
    actor.restart(0)
    batches = [deepcopy(batch) for batch in islice(actor, count) if batch is not None]
    actor.close()
    return batches


@pytest.mark.parametrize("shards", [2, 4])
def test_shards_play_what_one_actor_plays(shards: int) -> None:
    for whole, divided in zip(take(make(1)[0], 8), take(make(shards)[0], 8), strict=True):
        for name in (*BY_TIME, "memory", "steps"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(divided, name), err_msg=name)
        assert sorted(whole.episodes) == sorted(divided.episodes)


def test_new_weights_during_play_begin_a_new_segment() -> None:
    actor, policy = make(2)
    actor.restart(0)
    assert next(actor) is not None
    first = actor._actors[0]
    play = first._play_one_step  # type: ignore[attr-defined]

    def play_and_learn() -> None:
        play()
        policy.version += 1

    first._play_one_step = play_and_learn  # type: ignore[attr-defined]
    assert next(actor) is None


def test_time_is_the_mean_of_the_threads() -> None:
    timings = Timings()
    actor, _ = make(2, timings=timings)
    for number, spent in enumerate(actor._timings_of_actors):
        spent.seconds["env"] = 1.0 + 2.0 * number
    take(actor, 1)
    assert timings.drain()["env_seconds"] == pytest.approx(2.0, abs=0.5)


def test_a_shard_that_fails_fails_the_actor() -> None:
    class BrokenEnv(TapeEnv):
        def step(self, actions: Array) -> Step:
            raise RuntimeError(f"{len(actions)} simulators are broken")

    config, policy = settings("env.n_sim=4", "actor.n_steps=3"), ScriptedPolicy(None)
    actors = [Lockstep(config, env(2, 0, None), policy, 0, Timings()) for env in (TapeEnv, BrokenEnv)]
    actor = sharded(actors, Timings(), [])
    actor.restart(0)
    with pytest.raises(RuntimeError, match="2 simulators are broken"):
        next(actor)
    actor.close()
