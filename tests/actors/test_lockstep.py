"""The lockstep actor against the script of its games."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice

import numpy as np

from dba3c.actors.lockstep import Lockstep
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.timings import Timings
from dba3c.types import BY_TIME, Batch
from tests.fakes import scripted_env
from tests.fakes.scripted_env import (
    CountingPolicy,
    Moment,
    ScriptedPolicy,
    TapeEnv,
    ends,
    moments,
    raw_reward,
    scripted,
    value,
)
from tests.fakes.settings import settings

GAMMA = np.float32(0.99)


def make_actor(
    n_sim: int = 2, n_steps: int = 3, first: int = 0, tape: list[str] | None = None, *options: str
) -> tuple[Lockstep, ScriptedPolicy]:
    config = settings(f"env.n_sim={n_sim}", f"actor.n_steps={n_steps}", *options)
    policy = ScriptedPolicy(tape)
    return Lockstep(config, TapeEnv(n_sim, first, tape), policy, first, Timings()), policy


def take(actor: Lockstep, batches: int) -> list[Batch]:
    """Copies, because a batch is valid only until the next one is asked for."""
    return [deepcopy(batch) for batch in islice(actor, batches)]


def steps_of(batches: list[Batch], simulator: int) -> list[Moment]:
    return [at for batch in batches for at in moments(batch.observations[:-1, simulator])]


def assert_same_play(first: list[Batch], second: list[Batch]) -> None:
    for a, b in zip(first, second, strict=True):
        for name, one, other in zip(Batch._fields, a, b, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


def test_calls_of_two_batches() -> None:
    tape: list[str] = []
    actor, _ = make_actor(tape=tape)
    actor.restart(0)
    next(actor)
    next(actor)
    assert tape == [
        "reset",
        "predict 0:0:0 1:0:0", "step 0 1",
        "predict 0:0:1 1:0:1", "step 1 2",
        "predict 0:0:2 1:0:2", "step 2 0",
        "predict 0:0:3 1:0:3",  # bootstrap
        "predict 0:0:3 1:0:3", "step 0 1",  # again, because the weights have changed meanwhile
        "predict 0:0:4 1:1:0", "step 1 2",
        "predict 0:0:5 1:1:1", "step 2 0",
        "predict 0:0:6 1:1:2",
    ]  # fmt: skip


def test_a_carried_action_closes_one_segment_and_opens_the_next() -> None:
    tape: list[str] = []
    actor, policy = make_actor(2, 3, 0, tape, "actor.carry=true")
    actor.restart(0)
    first = take(actor, 1)[0]
    policy.version = 1
    second = take(actor, 1)[0]
    assert tape == [
        "reset",
        "predict 0:0:0 1:0:0", "step 0 1",
        "predict 0:0:1 1:0:1", "step 1 2",
        "predict 0:0:2 1:0:2", "step 2 0",
        "predict 0:0:3 1:0:3", "step 0 1",
        "predict 0:0:4 1:1:0", "step 1 2",
        "predict 0:0:5 1:1:1", "step 2 0",
        "predict 0:0:6 1:1:2",
    ]  # fmt: skip
    np.testing.assert_array_equal(first.actions[-1], second.actions[0])
    assert second.versions[:, 0].tolist() == [0, 1, 1]  # it was chosen with the weights before the update
    actor.restart(5)
    assert next(actor).versions[0].tolist() == [1, 1]  # type: ignore[union-attr]  # nothing is left of it
    assert tape[14:16] == ["reset", "predict 0:0:0 1:0:0"]


def test_every_step_appears_exactly_once_and_in_order() -> None:
    actor, _ = make_actor(n_sim=3, n_steps=4)
    actor.restart(0)
    batches = take(actor, 12)
    for simulator in range(3):
        assert steps_of(batches, simulator) == scripted(simulator, 48)


def test_rewards_are_clipped_and_scores_are_raw() -> None:
    actor, _ = make_actor(n_sim=3, n_steps=5)
    actor.restart(0)
    batches = take(actor, 8)
    for batch in batches:
        raw = np.array([raw_reward(at) for at in moments(batch.observations[:-1])])
        np.testing.assert_array_equal(batch.rewards.ravel(), np.clip(raw, -1, 1).astype(np.float32))
    finished: list[tuple[float, int]] = []
    for together in zip(*(scripted(simulator, 40) for simulator in range(3)), strict=True):
        for at in together:
            if ends(at):
                score = sum(raw_reward(Moment(at.simulator, at.game, step)) for step in range(at.step + 1))
                finished.append((score, at.step + 1))
    assert [tuple(episode) for batch in batches for episode in batch.episodes] == finished


def test_discounts_are_zero_at_terminal_steps_only() -> None:
    actor, _ = make_actor(n_sim=3, n_steps=5)
    actor.restart(0)
    for batch in take(actor, 8):
        expected = [0 if ends(at) or scripted_env.loses_life(at) else GAMMA for at in moments(batch.observations[:-1])]
        np.testing.assert_array_equal(batch.discounts.ravel(), np.array(expected, np.float32))


def test_values_are_those_of_the_observations_and_the_last_of_the_one_after() -> None:
    actor, _ = make_actor(n_sim=3, n_steps=4)
    actor.restart(0)
    for batch in take(actor, 10):
        np.testing.assert_array_equal(batch.values[:-1].ravel(), [value(at) for at in moments(batch.observations[:-1])])
        np.testing.assert_array_equal(
            batch.values[-1], [value(scripted_env.following(at)) for at in moments(batch.observations[-2])]
        )


def test_versions_are_those_of_the_policy() -> None:
    actor, policy = make_actor()
    actor.restart(0)
    assert (next(actor).versions == 0).all()
    policy.version = 41
    batch = next(actor)
    assert batch.versions.shape == batch.rewards.shape
    assert (batch.versions == 41).all()


def test_play_does_not_depend_on_how_simulators_are_shared_out() -> None:
    together, _ = make_actor(n_sim=4)
    left, _ = make_actor(n_sim=2, first=0)
    right, _ = make_actor(n_sim=2, first=2)
    for actor in (together, left, right):
        actor.restart(7)
    for whole, first, second in zip(take(together, 5), take(left, 5), take(right, 5), strict=True):
        for name in BY_TIME:
            halves = [getattr(half, name) for half in (first, second)]
            np.testing.assert_array_equal(getattr(whole, name), np.concatenate(halves, axis=1), err_msg=name)
        assert sorted(whole.episodes) == sorted(first.episodes + second.episodes)


def test_seeds_and_noise_are_keyed_by_simulator_update_and_step() -> None:
    actor, _ = make_actor(n_sim=2, n_steps=3, first=6)
    actor.restart(9)
    batches, simulators = take(actor, 3), np.array([6, 7])
    for step in range(9):
        batch, t = batches[step // 3], step % 3
        np.testing.assert_array_equal(batch.log_probabilities[t], action_noise(0, 9, simulators, step)[:, 0])
        np.testing.assert_array_equal(
            scripted_env.seeds_shown(batch.observations[t]), game_seeds(0, GAMES, 9, simulators)
        )
    noise = np.concatenate([batch.log_probabilities.ravel() for batch in batches])
    assert len(set(noise.tolist())) == noise.size


def test_restart_is_a_function_of_seed_and_update() -> None:
    used, _ = make_actor()
    used.restart(0)
    take(used, 3)  # leaves games half played
    used.restart(5)
    fresh, _ = make_actor()
    fresh.restart(5)
    again, other = take(used, 6), take(fresh, 6)
    assert_same_play(again, other)
    fresh.restart(6)
    different = take(fresh, 6)
    assert (
        scripted_env.seeds_shown(different[0].observations) != scripted_env.seeds_shown(other[0].observations)
    ).all()
    assert (different[0].log_probabilities != other[0].log_probabilities).all()


def test_close_closes_the_simulators() -> None:
    env = TapeEnv(2)
    Lockstep(settings("env.n_sim=2"), env, ScriptedPolicy(), 0, Timings()).close()
    assert env.closed


def test_memory_follows_the_episodes_and_is_not_moved_by_the_bootstrap() -> None:
    config = settings("env.n_sim=3", "actor.n_steps=4")
    actor = Lockstep(config, TapeEnv(3), CountingPolicy(), 0, Timings())
    actor.restart(0)
    for batch in take(actor, 8):
        assert batch.memory[:, 0].tolist() == [at.step for at in moments(batch.observations[0])]
        np.testing.assert_array_equal(batch.ended.ravel(), [ends(at) for at in moments(batch.observations[:-1])])
