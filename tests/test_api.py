"""The Python API in this process: agents and what they take, simulators, logs; whole trainings are in end_to_end."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import dba3c
from dba3c import api
from dba3c.api import TrainedAgent
from dba3c.config.messages import ConfigError
from dba3c.training import build
from dba3c.types import Array
from tests.fakes.agents import saved, small, untrained
from tests.fakes.settings import settings


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> TrainedAgent:
    return dba3c.load(saved(tmp_path_factory.mktemp("run"), small()))


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> TrainedAgent:
    catch = settings("env.game=catch", "env.profile=catch", "model.hidden=16", "model.memory=8")
    return dba3c.load(saved(tmp_path_factory.mktemp("run"), catch))


def pictures(count: int) -> Array:
    return np.random.default_rng(1).integers(0, 256, (count, 4, 84, 84), np.uint8)


def test_everything_that_is_promised_is_there() -> None:
    assert all(callable(getattr(dba3c, name)) for name in dba3c.__all__)
    assert dba3c.train is importlib.import_module("dba3c.train")
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        dba3c.trian  # noqa: B018


def test_one_observation_and_a_batch_get_the_same_answers(agent: TrainedAgent) -> None:
    batch = pictures(5)
    actions, state = agent.predict(batch)
    assert actions.shape == (5,)
    assert state is None
    assert [agent.greedy(one) for one in batch] == actions.tolist()
    assert all(agent.action_space.contains(action) for action in actions)
    np.testing.assert_allclose([agent.value(one) for one in batch], agent.value(batch), rtol=1e-4)


def test_other_ways_to_arrange_frames_mean_the_same(agent: TrainedAgent) -> None:
    batch = pictures(3)
    expected = agent.value(batch)
    np.testing.assert_array_equal(agent.value(np.moveaxis(batch, 1, -1)), expected)  # stable-baselines3
    np.testing.assert_allclose(agent.value(np.moveaxis(batch[0], 0, -1)), expected[0], rtol=1e-4)  # one alone
    np.testing.assert_array_equal(agent.value(batch[..., np.newaxis]), expected)  # gymnasium, grayscale_newaxis
    np.testing.assert_array_equal(agent.value([*batch]), expected)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros((4, 84, 84), np.float32), r"dtype float32; the agent takes uint8"),
        (np.zeros((84, 84), np.uint8), r"shape \(84, 84\); the agent takes \(4, 84, 84\)"),
        (np.zeros((2, 4, 84, 83), np.uint8), r"shape \(2, 4, 84, 83\)"),
        (np.zeros((), np.uint8), r"shape \(\)"),
    ],
)
def test_other_observations_are_refused(agent: TrainedAgent, observation: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agent.predict(observation)


def test_sampled_actions_follow_the_policy(agent: TrainedAgent) -> None:
    same = np.repeat(pictures(1), 400, axis=0)
    assert len(set(agent.act(same).tolist())) > 1  # an untrained policy is nearly uniform
    assert len(set(agent.greedy(same).tolist())) == 1


def test_a_memory_is_carried_from_call_to_call_and_reset_where_an_episode_begins(recurrent: TrainedAgent) -> None:
    env = recurrent.make_env(2)
    observations = env.reset(np.arange(2))
    env.close()
    _, first = recurrent.predict(observations)
    _, second = recurrent.predict(observations, first)
    assert first is not None
    assert second is not None
    assert first.shape == (2, 16)
    assert not np.allclose(first, second)
    _, partly = recurrent.predict(observations, first, episode_start=[True, False])
    np.testing.assert_array_equal(partly, np.stack([first[0], second[1]]))
    with pytest.raises(ValueError, match="use predict"):
        recurrent.greedy(observations)
    with pytest.raises(ValueError, match=r"state has shape \(1, 16\), not \(2, 16\)"):
        recurrent.predict(observations, first[:1])


def test_simulators_are_those_of_training() -> None:
    env = dba3c.make_env("SpaceInvaders", n_sim=2, life_loss_terminal=False)
    assert env.reset(np.arange(2)).shape == (2, 4, 84, 84)
    env.close()
    catch = dba3c.make_env("catch", n_sim=3)
    assert len(catch.reset(np.arange(3))) == 3
    catch.close()
    with pytest.raises(ConfigError, match=r"game='pnog'.*did you mean pong"):
        dba3c.make_env("pnog")
    with pytest.raises(ConfigError, match=r"env\.n_sims: no such key"):
        dba3c.make_env("pong", n_sims=2)


def test_agents_that_are_not_there_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"agent=runs/nothing: is no run directory"):
        dba3c.load("runs/nothing")
    with pytest.raises(ConfigError, match=r"agent=freeway: no agent of this game .* known: .*pong"):
        dba3c.load("freeway")


def test_logs_are_read_as_arrays() -> None:
    run = dba3c.read_run(Path(api.__file__).parents[1] / "docs" / "runs" / "pong-0")
    assert run.config.env.game == "pong"
    assert run.summary["evaluation_score"] >= 20
    assert (np.diff(run.column("steps")) >= 0).all()


def test_a_new_run_starts_from_an_agent_that_fits() -> None:
    config = small()
    other = untrained(config)
    other.weights[:] = 0.5
    started = build.agent(config, other)
    np.testing.assert_array_equal(started.weights.numpy(), other.weights)
    assert started.version == 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hidden=32", r"--init: the agent has model.hidden=16, this training 32; add --model.hidden=16"),
        ("model.standardise=true", r"--init: the agent has model.standardise=false, .*--model.standardise=false"),
        ("env.game=breakout", r"--init: .* weights, .*: space_invaders and breakout differ in their actions"),
    ],
)
def test_an_agent_that_does_not_fit_is_refused_with_the_remedy(override: str, message: str) -> None:
    other = untrained(small())
    with pytest.raises(ConfigError, match=message):
        build.agent(small(override), other)
