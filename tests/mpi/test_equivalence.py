"""N ranks × batch b = 1 rank × batch N·b, on a real game, for every optimizer; and what all ranks must agree on."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c import build, config
from dba3c.agreement import DisagreementError, check_weights
from dba3c.evaluation import evaluate
from dba3c.sections import Config
from dba3c.trainer import train
from dba3c.types import Array, Progress, Timings, Transport
from tests.helpers import Loopback

SIMULATORS = 12  # of the whole job; 1, 2, 3 and 4 ranks divide them
UPDATES = 4


def settings(n_sim: int, optimizer: str, *more: str) -> Config:
    rate = {"adam": 1e-3, "rmsprop": 1e-2, "sgd": 0.1}[optimizer]
    return config.load(
        "fast",
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


def weights_after(settings: Config, transport: Transport) -> Array:
    """Weights of this transport's job after some updates."""
    timings, progress = Timings(), Progress()
    agent = build.agent(settings)
    rule = build.optimizer(settings, agent)
    communicator = build.communicator(settings, transport, agent, rule, timings, progress)
    player = build.player(settings, agent, transport.rank, 1, timings)
    player.restart(0)
    rollout = SIMULATORS * settings.actor.n_steps
    # The four updates that PPO takes from a rollout and one from the next, or one from each of four rollouts.
    total = rollout + 1 if settings.algorithm.name == "ppo" else UPDATES * rollout
    for update in train(player, agent, communicator, progress, total, False, timings):
        assert update.applied
    player.close()
    assert progress.updates == UPDATES + (settings.algorithm.name == "ppo")
    return np.array(agent.weights.numpy())


PPO = ("algorithm.name=ppo", "actor.n_steps=6", "algorithm.minibatches=2", "algorithm.passes=2")


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [("adam", ()), ("rmsprop", ()), ("sgd", ()), ("adam", PPO)],
    ids=["adam", "rmsprop", "sgd", "ppo"],
)
def test_layouts_learn_the_same(transport: Transport, optimizer: str, more: tuple[str, ...]) -> None:
    shared = weights_after(settings(SIMULATORS // transport.size, optimizer, *more), transport)
    alone = weights_after(settings(SIMULATORS, optimizer, *more), Loopback())
    first = build.agent(settings(SIMULATORS, optimizer)).weights.numpy()
    moved = np.abs(alone - first).max()
    assert moved > 1e-4
    np.testing.assert_allclose(shared, alone, rtol=0, atol=moved * 1e-3)
    assert len({vector.tobytes() for vector in transport.gather(shared)}) == 1


def test_same_seed_gives_the_same_bits(transport: Transport) -> None:
    runs = [weights_after(settings(SIMULATORS // transport.size, "adam"), transport) for _ in range(2)]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_ranks_share_the_evaluation(transport: Transport) -> None:
    short = ["evaluate.games=5", "evaluate.max_frames=600", "evaluate.probe_games=0"]
    chosen = config.load("fast", ["env.game=pong", *short])
    agent = build.agent(chosen)
    make_env = build.evaluation_env(chosen, threads=1)
    shared = evaluate(chosen, agent, make_env, transport)
    alone = evaluate(chosen, agent, make_env, Loopback())
    assert shared.scores == alone.scores
    assert shared.full


def test_weights_that_differ_are_noticed(transport: Transport) -> None:
    agent = build.agent(settings(2, "sgd"))
    check_weights(agent.weights.numpy(), transport, update=1)
    if transport.size > 1:
        changed = agent.weights.numpy()
        changed[5] = np.nextafter(changed[5], np.inf) if transport.rank == transport.size - 1 else changed[5]
        agent.load(changed, 1)
        with pytest.raises(DisagreementError, match="weights of ranks"):
            check_weights(agent.weights.numpy(), transport, update=2)
