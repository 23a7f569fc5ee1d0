"""The parts together learn a small game: Catch, on one rank, with either actor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dba3c.actors import sharded
from dba3c.actors.asynchronous import lag_bound
from dba3c.config.schema import Config
from dba3c.envs.catch import CatchEnv
from dba3c.learning import shards
from dba3c.learning.a3c import A3C
from dba3c.learning.agent import Agent
from dba3c.learning.clipping import GuardedLearner
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.training import build, loop
from dba3c.training.evaluation import evaluate
from dba3c.types import Actor, Array, Clock, Step, Update
from tests.fakes.loopback import Loopback
from tests.fakes.settings import settings

STEPS = 25_600
PPO = ("algorithm.name=ppo", "algorithm.passes=2", "algorithm.minibatches=2", "actor.n_steps=8")


def catch_settings(*overrides: str) -> Config:
    """The paper's optimizer on the small network."""
    return settings(
        "env.game=catch", "env.profile=catch", "model.hidden=64", "algorithm.clip_norm=0.5",
        "optimizer.epsilon=1e-5", "optimizer.schedule=constant",
        f"train.total_steps={STEPS}", "train.target_score=none", "evaluate.games=40", *overrides,
    )  # fmt: skip


def new_agent(config: Config) -> Agent:
    return build.agent(config)


def make_actor(config: Config, agent: Agent, timings: Timings) -> Actor:
    return build.actor(config, agent, 0, 1, timings)


def mean_score(updates: list[Update]) -> float:
    """Mean raw score of the episodes that ended during these updates."""
    return sum(update.sums["score"] for update in updates) / sum(update.sums["episodes"] for update in updates)


def learn(config: Config) -> tuple[Agent, list[Update], Progress]:
    timings, progress = Timings(), Progress()
    agent = new_agent(config)
    strategy = build.strategy(config, Loopback(), agent, build.optimizer(config, agent), timings, progress)
    actor = make_actor(config, agent, timings)
    actor.restart(0)
    total = config.train.total_steps
    outliers = getattr(agent.algorithm, "outliers", None)
    trainers = build.trainers(config, agent, lambda: actor)
    learner = GuardedLearner(trainers, outliers, lambda: 0, lambda _: None) if outliers else trainers
    updates = list(loop.updates(actor, learner, strategy, progress, total, lambda: False, timings))
    actor.close()
    return agent, updates, progress


@pytest.mark.parametrize(
    ("kind", "threads"), [("lockstep", 1), ("async", 1), ("async", 2)], ids=["lockstep", "async", "ga3c"]
)
def test_catch_is_learned(kind: str, threads: int) -> None:
    crew = (f"actor.predictors={threads}", f"actor.trainers={threads}")
    config = catch_settings(f"actor.kind={kind}", "actor.group_size=8", *crew)
    agent, updates, progress = learn(config)
    score = evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean

    assert progress.steps == STEPS
    assert mean_score(updates[:20]) < -0.4  # a random walk rarely ends under the ball
    assert mean_score(updates[-100:]) > 0.8
    assert score > 0.8
    lag = max(float(update.by_rank["max_lag"].max()) for update in updates)
    assert lag == 0 if kind == "lockstep" else 0 < lag <= lag_bound(config)
    assert np.isfinite(agent.weights.numpy()).all()


@pytest.mark.parametrize(("cells", "kind"), [(32, "lockstep"), (32, "async"), (0, "lockstep")])
def test_catch_that_hides_the_ball_is_learned_by_what_remembers(cells: int, kind: str) -> None:
    """The ball shows in the first row only. The paddle's own place says left, middle or right: three balls of five.

    Whoever remembers nothing can thus score 0.2 on average, and a little more in a lucky evaluation.
    """
    config = catch_settings(
        "env.blind=true", f"model.memory={cells}", f"actor.kind={kind}", "actor.group_size=8", "actor.n_steps=8",
        "optimizer.learning_rate=0.003", "optimizer.beta1=0.9", "optimizer.beta2=0.99",
        f"train.total_steps={2 * STEPS}",
    )  # fmt: skip
    agent, updates, _ = learn(config)
    score = evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean
    assert mean_score(updates[:20]) < -0.4
    if cells:
        assert mean_score(updates[-100:]) > 0.8
        assert score > 0.8
    else:
        assert mean_score(updates[-100:]) < 0.3
        assert score < 0.6


def test_several_passes_learn_catch_from_half_the_steps() -> None:
    ppo = ("algorithm.name=ppo", "actor.n_steps=32", "algorithm.passes=3", "algorithm.minibatches=4")
    config = catch_settings(*ppo, "optimizer.beta1=0.9", "optimizer.beta2=0.99", f"train.total_steps={STEPS // 2}")
    agent, updates, progress = learn(config)
    assert progress.steps >= STEPS // 2
    segment = 16 * 32
    whole = updates[: len(updates) // 12 * 12]  # the last segment ends with the steps
    assert sum(update.samples for update in whole) == 3 * sum(update.steps for update in whole)
    assert [update.steps for update in updates[:12]] == [segment // 4] * 4 + [0] * 8
    assert mean_score(updates[:24]) < -0.4
    assert evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean > 0.8
    assert max(float(update.by_rank["max_lag"].max()) for update in updates) == 11  # the last of 12 updates per segment


@pytest.mark.parametrize("returns", ["one_step", "sarsa", "n_step"])
def test_catch_is_learned_by_what_each_action_is_worth(returns: str) -> None:
    config = catch_settings(
        "algorithm.name=q", f"algorithm.returns={returns}", "actor.carry=true", "algorithm.target_every_steps=800",
        "algorithm.epsilons=[0.1, 0.01]", "algorithm.epsilon_steps=6400", "optimizer.beta1=0.9",
        "optimizer.beta2=0.99", f"train.total_steps={STEPS * 3 // 4}",
    )  # fmt: skip
    agent, updates, _ = learn(config)
    assert mean_score(updates[:20]) < -0.4
    assert mean_score(updates[-50:]) > 0.5  # one action in twenty is random
    assert evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean > 0.8
    assert updates[-1].sums["epsilon"] / updates[-1].samples == pytest.approx(0.055)


def test_catch_is_learned_from_a_replay_memory_with_fewer_steps() -> None:
    config = catch_settings(
        "algorithm.name=q", "algorithm.returns=one_step", "algorithm.double=true", "algorithm.error_clip=1",
        "algorithm.target_every_steps=800", "algorithm.epsilons=[0.05]", "algorithm.epsilon_steps=3000",
        "optimizer.beta1=0.9", "optimizer.beta2=0.99", "env.n_sim=4", "actor.n_steps=1", "train.batch_size=32",
        "experience.capacity_steps=4000", "experience.warm_up_steps=400", "train.total_steps=6000",
    )  # fmt: skip
    agent, updates, progress = learn(config)
    assert (progress.steps, progress.updates, progress.empty) == (6000, 1500, 99)
    assert [(update.samples, update.steps) for update in updates[98:101]] == [(0, 4), (32, 4), (32, 4)]
    assert updates[0].sums.keys() == updates[-1].sums.keys()
    assert mean_score(updates[:100]) < -0.4
    assert mean_score(updates[-250:]) > 0.6
    assert evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean > 0.8


@pytest.mark.parametrize(("deviations", "dropped"), [(0, 0), (6, 15)])
def test_bad_rewards_spoil_a_run_unless_outliers_are_dropped(
    deviations: int, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step in two thousand is rewarded with ±100; plain SGD, without clipping of any kind, takes it at its word."""
    config = catch_settings(
        "algorithm.name=q", "actor.n_steps=2", "env.n_sim=8", "algorithm.target_every_steps=800",
        "algorithm.epsilons=[0.05]", "algorithm.epsilon_steps=5000", "env.reward_clip=0", "algorithm.clip=none",
        "optimizer.name=sgd", "optimizer.learning_rate=0.05", f"algorithm.outlier_deviations={deviations}",
        "train.total_steps=24000",
    )  # fmt: skip
    random, step = np.random.default_rng(5), CatchEnv.step

    def spoiled(self: CatchEnv, actions: Array) -> Step:
        answer, bad = step(self, actions), random.random(self.n_sim) < 0.0005
        return answer._replace(rewards=np.where(bad, 100.0 * random.choice([-1, 1], self.n_sim), answer.rewards))

    with monkeypatch.context() as patched:
        patched.setattr(CatchEnv, "step", spoiled)
        agent, _, progress = learn(config)
    assert progress.empty == dropped
    score = evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean
    assert score > 0.8 if deviations else score < 0.5


def first_gradient(config: Config, done: float) -> Array:
    agent = new_agent(config)
    agent.clock = Clock(0, round(done * 100), 100)
    actor = make_actor(config, agent, Timings())
    actor.restart(0)
    batch = next(actor)
    assert batch is not None
    (gradient,) = agent.gradients(batch)
    return gradient.mean


def test_the_compiled_gradient_reads_the_scheduled_entropy_weight() -> None:
    scheduled = catch_settings("algorithm.entropy=0.5", "algorithm.entropy_schedule=linear")
    at_the_end = first_gradient(scheduled, 1.0)
    assert at_the_end.tobytes() == first_gradient(catch_settings("algorithm.entropy=0"), 0.0).tobytes()
    assert np.abs(first_gradient(scheduled, 0.0) - at_the_end).max() > 1e-4


def test_the_algorithm_follows_the_clock_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    config = catch_settings("train.total_steps=320")  # updates of 16 simulators × 5 steps
    told: list[tuple[int, Clock]] = []
    monkeypatch.setattr(A3C, "follow", lambda _, update, clock, _weights: told.append((update.number, clock)))
    learned_at: list[float] = []
    columns = A3C.columns
    monkeypatch.setattr(
        A3C, "columns", lambda self, batch, clock, e: learned_at.append(clock.done) or columns(self, batch, clock, e)
    )
    learn(config)
    assert told == [(number, Clock(number, 80 * number, 320)) for number in (1, 2, 3, 4)]
    assert learned_at == [0.0, 0.25, 0.5, 0.75]


def test_nothing_to_learn_from_is_no_step_of_the_optimizer() -> None:
    """Adam would move the weights by its momentum, even if all gradients were zero."""
    config = catch_settings()
    agent, timings, progress = new_agent(config), Timings(), Progress()
    strategy = build.strategy(config, Loopback(), agent, build.optimizer(config, agent), timings, progress)
    actor = make_actor(config, agent, timings)
    actor.restart(0)
    (gradient,) = (one for one in loop.gradients(next(actor), agent, timings) if one is not None)
    (moved,) = strategy.update(gradient, lambda: False)
    before = agent.weights.numpy()
    nothing = gradient._replace(mean=np.zeros_like(gradient.mean), samples=0, steps=80, version=1)
    (update,) = strategy.update(nothing, lambda: False)
    for each in (moved, update):
        progress.count(each)
    assert moved.applied
    assert not update.applied
    assert not update.skipped
    assert agent.weights.numpy().tobytes() == before.tobytes()
    assert (progress.updates, progress.steps, progress.empty, progress.skipped) == (2, 160, 1, 0)


@pytest.mark.parametrize("more", [(), PPO], ids=["a3c", "ppo"])
def test_the_number_of_threads_moves_no_weight(more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Four shards on one, two and four threads: the same weights, bit for bit."""
    config = catch_settings("actor.shards=4", "env.n_sim=8", "train.total_steps=800", *more)
    found = []
    for threads in (1, 2, 4):
        for module in (sharded, shards):
            monkeypatch.setattr(module, "ThreadPoolExecutor", lambda _, name, n=threads: ThreadPoolExecutor(n, name))
        agent, updates, _ = learn(config)
        assert len(updates) >= 20
        found.append(agent.weights.numpy().tobytes())
    assert found[0] == found[1] == found[2]
