"""The parts together learn a small game: Catch, on one rank, with either player."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.actors.asynchronous import Async, lag_bound
from dba3c.actors.lockstep import Lockstep
from dba3c.config.schema import Config
from dba3c.learning.a3c import A3C
from dba3c.learning.agent import Agent
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from dba3c.training.loop import train
from dba3c.types import Array, Player, Progress, Timings, Update
from tests.fakes.catch import Catch
from tests.fakes.loopback import Loopback
from tests.fakes.settings import settings

STEPS = 25_600


def catch_settings(*overrides: str) -> Config:
    """The paper's optimizer on the small network."""
    return settings(
        "model.hidden=64", "algorithm.clip_norm=0.5", "optimizer.epsilon=1e-5", "optimizer.schedule=constant",
        f"train.total_steps={STEPS}", "train.target_score=none", "evaluate.games=40", *overrides,
    )  # fmt: skip


def make_player(config: Config, agent: Agent, timings: Timings) -> Player:
    if config.actor.kind == "lockstep":
        return Lockstep(config, Catch(config.env.n_sim), agent, 0, timings)
    groups = range(config.env.n_sim // config.actor.group_size)
    return Async(config, [Catch(config.actor.group_size) for _ in groups], agent, 0, timings)


def mean_score(updates: list[Update]) -> float:
    """Mean raw score of the games that ended during these updates."""
    return sum(update.sums["score"] for update in updates) / sum(update.sums["episodes"] for update in updates)


def learn(config: Config) -> tuple[Agent, list[Update], Progress]:
    timings, progress = Timings(), Progress()
    agent = build.agent_for(config, Catch.observation_shape, Catch.n_actions)
    communicator = build.communicator(config, Loopback(), agent, build.optimizer(config, agent), timings, progress)
    player = make_player(config, agent, timings)
    player.restart(0)
    updates = list(train(player, agent, communicator, progress, config.train.total_steps, False, timings))
    player.close()
    return agent, updates, progress


@pytest.mark.parametrize("kind", ["lockstep", "async"])
def test_catch_is_learned(kind: str) -> None:
    config = catch_settings(f"actor.kind={kind}", "actor.group_size=8")
    agent, updates, progress = learn(config)
    score = evaluate(config, agent, Catch, Loopback()).mean

    assert progress.steps == STEPS
    assert mean_score(updates[:20]) < -0.4  # a random walk rarely ends under the ball
    assert mean_score(updates[-100:]) > 0.8
    assert score > 0.8
    lag = max(float(update.by_rank["max_lag"].max()) for update in updates)
    assert lag == 0 if kind == "lockstep" else 0 < lag <= lag_bound(config)
    assert np.isfinite(agent.weights.numpy()).all()


def test_several_passes_learn_catch_from_half_the_steps() -> None:
    ppo = ("algorithm.name=ppo", "actor.n_steps=32", "algorithm.passes=3", "algorithm.minibatches=4")
    config = catch_settings(*ppo, "optimizer.beta1=0.9", "optimizer.beta2=0.99", f"train.total_steps={STEPS // 2}")
    agent, updates, progress = learn(config)
    assert progress.steps >= STEPS // 2
    rollout = 16 * 32
    whole = updates[: len(updates) // 12 * 12]  # the last rollout ends with the steps
    assert sum(update.samples for update in whole) == 3 * sum(update.steps for update in whole)
    assert [update.steps for update in updates[:12]] == [rollout // 4] * 4 + [0] * 8
    assert mean_score(updates[:24]) < -0.4
    assert evaluate(config, agent, Catch, Loopback()).mean > 0.8
    assert max(float(update.by_rank["max_lag"].max()) for update in updates) == 11  # the last of 12 updates per rollout


def first_gradient(config: Config, progress: float) -> Array:
    agent = build.agent_for(config, Catch.observation_shape, Catch.n_actions)
    player = make_player(config, agent, Timings())
    player.restart(0)
    (gradient,) = agent.gradients(next(player), 1.0, progress)
    return gradient.mean


def test_the_compiled_gradient_reads_the_scheduled_entropy_weight() -> None:
    scheduled = catch_settings("algorithm.entropy=0.5", "algorithm.entropy_schedule=linear")
    at_the_end = first_gradient(scheduled, 1.0)
    assert at_the_end.tobytes() == first_gradient(catch_settings("algorithm.entropy=0"), 0.0).tobytes()
    assert np.abs(first_gradient(scheduled, 0.0) - at_the_end).max() > 1e-4


def test_schedules_are_told_the_progress_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    monkeypatch.setattr(A3C, "anneal", lambda _, progress: told.append(progress))
    learn(catch_settings("train.total_steps=320"))  # updates of 16 games × 5 steps
    assert told == [0.0, 0.25, 0.5, 0.75]
