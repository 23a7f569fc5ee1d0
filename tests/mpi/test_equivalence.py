"""N ranks × batch b = 1 rank × batch N·b, on a real game, for every optimizer; and what all ranks must agree on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
import pytest

from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from dba3c.training.loop import updates
from dba3c.training.state import WeightsDifferError, check_weights
from dba3c.types import Array, Clock, Transport
from tests.fakes.loopback import Loopback

T = TypeVar("T")

SIMULATORS = 2  # of a rank; each takes ALE a fifth of a second to start
UPDATES = 4
PPO = (
    "algorithm.name=ppo", "actor.n_steps=6", "algorithm.minibatches=2", "algorithm.passes=2",
    "algorithm.entropy_schedule=linear",
)  # fmt: skip

LSTM = ("model.memory=8",)
GAUSSIAN = (
    "env.profile=gymnasium", "env.game=Pendulum-v1", "env.reward_clip=0", "model.torso=mlp", "model.separate=true",
)  # fmt: skip
NORMALISED = (*GAUSSIAN, "env.normalise_observations=true", "env.normalise_rewards=true")
SHARDS = ("actor.shards=2",)

Q = {  # the target network is copied within the four updates, and the simulators explore differently
    returns: (
        "algorithm.name=q", f"algorithm.returns={returns}", "actor.carry=true", "algorithm.target_every_steps=10",
        "algorithm.epsilons=[0.1, 0.9, 0.5]", "algorithm.epsilon_steps=10",
    )
    for returns in ("one_step", "sarsa", "n_step", "lambda")
}  # fmt: skip
Q["lambda"] += ("actor.n_steps=6", "algorithm.minibatches=2", "algorithm.passes=2")


def settings(n_sim: int, optimizer: str, *more: str) -> Config:
    rate = {"adam": 1e-3, "rmsprop": 1e-2, "sgd": 0.1, "momentum_sgd": 0.1, "adagrad": 0.05}[optimizer]
    return loading.load(
        "a2c",
        [
            "env.game=pong",
            f"env.n_sim={n_sim}",
            "actor.n_steps=3",
            "model.hidden=16",
            f"optimizer.name={optimizer}",
            f"optimizer.learning_rate={rate}",
            "optimizer.epsilon=1e-3",  # Adam at 1e-8 turns rounding of tiny gradients into full steps
            *more,
        ],
    )


@cache
def agent_with_first_weights(algorithm: tuple[str, ...]) -> tuple[Agent, Array]:
    agent = build.agent(settings(SIMULATORS, "adam", *algorithm))
    return agent, np.array(agent.weights.numpy())


def new_agent(algorithm: tuple[str, ...] = ()) -> Agent:
    """Make the agent as new: building another one takes a second."""
    agent, first = agent_with_first_weights(algorithm)
    agent.load(first, Clock(0, 0, 1))
    agent.algorithm.restore({})
    agent.normaliser.restore({name: 0 * value for name, value in agent.normaliser.state().items()})
    return agent


def weights_after(optimizer: str, more: tuple[str, ...], simulators: int, transport: Transport) -> Array:
    """Weights after some updates of a job with so many simulators in all."""
    config = settings(simulators // transport.size, optimizer, *more)
    segment = simulators * config.actor.n_steps
    # The four updates that several passes take from a segment and one from the next, or one from each of four segments.
    total = segment + 1 if config.several_passes else UPDATES * segment
    config = settings(simulators // transport.size, optimizer, *more, f"train.total_steps={total}")
    timings, progress, agent = Timings(), Progress(), new_agent(more)
    rule = build.optimizer(config, agent)
    strategy = build.strategy(config, transport, agent, rule, timings, progress)
    actor = build.actor(config, agent, transport.rank, 1, timings)
    actor.restart(0)
    for update in updates(actor, agent, strategy, progress, total, lambda: False, timings):
        assert update.applied
    actor.close()
    assert progress.updates == UPDATES + config.several_passes
    return np.array(agent.weights.numpy())


@cache
def weights_shared(optimizer: str, more: tuple[str, ...], transport: Transport) -> Array:
    return weights_after(optimizer, more, SIMULATORS * transport.size, transport)


def of_rank_0(transport: Transport, work: Callable[[], T]) -> T:
    result: T = transport.broadcast(work() if transport.rank == 0 else None)
    return result


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [
        pytest.param("adam", (), id="adam"),
        pytest.param("rmsprop", (), id="rmsprop"),
        pytest.param("sgd", (), id="sgd"),
        pytest.param("momentum_sgd", ("optimizer.momentum=0.5",), id="momentum_sgd"),
        pytest.param("adagrad", (), id="adagrad"),
        pytest.param("adam", PPO, id="ppo"),
        pytest.param("adam", LSTM, id="lstm"),
        pytest.param("adam", (*PPO, *LSTM), id="ppo-lstm"),
        pytest.param("adam", SHARDS, id="shards"),
        *(pytest.param("adam", options, id=f"q-{returns}") for returns, options in Q.items()),
        pytest.param("adam", GAUSSIAN, id="gaussian"),
        pytest.param("adam", NORMALISED, id="normalised"),
        pytest.param("adam", (*PPO, *NORMALISED), id="ppo-normalised"),
    ],
)
def test_layouts_learn_the_same(transport: Transport, optimizer: str, more: tuple[str, ...]) -> None:
    shared = weights_shared(optimizer, more, transport)
    alone = of_rank_0(transport, lambda: weights_after(optimizer, more, SIMULATORS * transport.size, Loopback()))
    moved = np.abs(alone - new_agent(more).weights.numpy()).max()
    assert moved > 1e-4
    np.testing.assert_allclose(shared, alone, rtol=0, atol=moved * 1e-3)
    assert len({vector.tobytes() for vector in transport.gather(shared)}) == 1


def test_same_seed_gives_the_same_bits(transport: Transport) -> None:
    again = weights_after("adam", (), SIMULATORS * transport.size, transport)
    assert again.tobytes() == weights_shared("adam", (), transport).tobytes()


SHORT = loading.load("a2c", ["env.game=pong", "evaluate.games=5", "evaluate.max_frames=600", "evaluate.probe_games=0"])


@cache
def scores_alone() -> list[float]:
    return evaluate(SHORT, new_agent(), build.evaluation_env(SHORT, threads=1), Loopback()).scores


def test_ranks_share_the_evaluation(transport: Transport) -> None:
    shared = evaluate(SHORT, new_agent(), build.evaluation_env(SHORT, threads=1), transport)
    assert shared.scores == of_rank_0(transport, scores_alone)
    assert shared.full


def test_weights_that_differ_are_noticed(transport: Transport) -> None:
    changed = np.array(new_agent().weights.numpy())
    check_weights(changed, transport, update=1)
    if transport.size > 1:
        changed[5] = np.nextafter(changed[5], np.inf) if transport.rank == transport.size - 1 else changed[5]
        with pytest.raises(WeightsDifferError, match="weights of ranks"):
            check_weights(changed, transport, update=2)


REPLAY = (
    "algorithm.name=q", "algorithm.returns=one_step", "actor.n_steps=2", "model.hidden=16", "optimizer.epsilon=1e-3",
    "algorithm.target_every_steps=40",
)  # fmt: skip
OF_A_PART = {
    "env.n_sim": 2, "train.batch_size": 8, "experience.capacity_steps": 60, "experience.warm_up_steps": 20,
    "experience.steps_per_update": 4,
}  # fmt: skip


def weights_with_replay(transport: Transport, parts: int, scope: str = "local") -> tuple[Array, Progress]:
    """Weights of a job of so many parts, of two simulators each, after each part's ring was written over."""
    sizes = [f"{name}={number * parts // transport.size}" for name, number in OF_A_PART.items()]
    config = loading.load("catch", [*REPLAY, *sizes, f"experience.scope={scope}", f"train.total_steps={160 * parts}"])
    timings, progress, agent = Timings(), Progress(), build.agent(config)
    strategy = build.strategy(config, transport, agent, build.optimizer(config, agent), timings, progress)
    actor = build.actor(config, agent, transport.rank, 1, timings, transport=transport)
    actor.restart(0)
    for update in updates(actor, agent, strategy, progress, config.train.total_steps, lambda: False, timings):
        assert update.samples in (0, 8 * parts)
    actor.close()
    return np.array(agent.weights.numpy()), progress


def test_replay_memories_of_their_own_lead_all_ranks_to_the_same_weights_every_time(transport: Transport) -> None:
    """What a rank draws depends on its number: so the same layout gives the same bits, and another one does not."""
    weights, progress = weights_with_replay(transport, transport.size)
    assert (progress.updates, progress.empty, progress.steps) == (40, 4, 160 * transport.size)
    assert len({vector.tobytes() for vector in transport.gather(weights)}) == 1
    assert weights_with_replay(transport, transport.size)[0].tobytes() == weights.tobytes()


def test_layouts_learn_the_same_from_the_memories_of_all_ranks(transport: Transport) -> None:
    """With experience.scope=global, what is drawn depends on the whole job alone."""
    shared, progress = weights_with_replay(transport, transport.size, "global")
    alone = of_rank_0(transport, lambda: weights_with_replay(Loopback(), transport.size, "global")[0])
    start = build.agent(loading.load("catch", REPLAY)).weights.numpy()
    moved = np.abs(alone - start).max()
    assert (progress.updates, progress.empty) == (40, 4)
    assert moved > 1e-3
    np.testing.assert_allclose(shared, alone, rtol=0, atol=moved * 1e-3)
    assert len({vector.tobytes() for vector in transport.gather(shared)}) == 1
