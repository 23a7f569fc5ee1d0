"""Gradients of old weights spoil a training on Catch; comm.max_staleness protects it. The workers are emulated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dba3c.comm.clerk import Clerk, Header
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent
from dba3c.timings import Timings
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from dba3c.types import Clock, Gradient, Update
from tests.fakes.loopback import Loopback
from tests.fakes.settings import settings

SLOW = 63  # workers beside a fast one, which brings every third gradient: theirs are 94 updates old
GRADIENTS = 2100
TOTAL = 16 * GRADIENTS


def turns() -> Iterator[int]:
    """Say whose gradient comes next: 0 is the fast worker."""
    slow = 0
    while True:
        for _ in range(2):
            slow = slow % SLOW + 1
            yield slow
        yield 0


def train(config: Config, agent: Agent) -> int:
    """Let 64 workers share the weights as the clerk of comm.strategy=server decides; count what it refuses."""
    clerk = Clerk(1 + SLOW, Clock(0, 0, TOTAL), 0, lambda _: False, max_staleness=config.comm.max_staleness)
    rule, actor = build.optimizer(config, agent), build.actor(config, agent, 0, 1, Timings())
    actor.restart(0)
    computed: dict[int, Gradient] = {}
    refused = 0
    for _, worker in zip(range(GRADIENTS), turns(), strict=False):
        if (gradient := computed.pop(worker, None)) is not None:
            header = Header(gradient.samples, gradient.steps, gradient.version, True, False, gradient.sums, {})
            (_, ticket), *_ = clerk.take(worker, header)
            refused += not ticket.group
            if ticket.group:
                rule.apply(gradient.mean, ticket.clock)
                clock = Clock(ticket.clock.updates + 1, ticket.clock.steps + gradient.steps, TOTAL)
                agent.follow(Update(clock.updates, gradient.samples, gradient.steps, False, False, {}, {}), clock)
        batch = next(actor)
        assert batch is not None
        (computed[worker],) = agent.gradients(batch)  # with the weights that the answer has brought
    actor.close()
    return refused


@pytest.mark.parametrize("limit", [0, 20])
def test_stale_gradients_spoil_a_run_unless_they_are_refused(limit: int) -> None:
    """The same workers bring the same number of gradients; with the limit, those of the fast one alone count."""
    config = settings(
        "env.game=catch", "env.profile=catch", "env.n_sim=8", "model.hidden=64", "actor.n_steps=2", "algorithm.name=q",
        "algorithm.target_every_steps=800", "algorithm.epsilons=[0.05]", "algorithm.epsilon_steps=4000",
        "algorithm.clip=none", "optimizer.name=sgd", "optimizer.learning_rate=0.15", "optimizer.schedule=constant",
        "comm.strategy=server", f"comm.max_staleness={limit}", "train.target_score=none", "evaluate.games=40",
    )  # fmt: skip
    agent = build.agent(config)
    refused = train(config, agent)
    score = evaluate(config, agent, build.evaluation_env(config, 1), Loopback()).mean
    if limit:
        assert refused > GRADIENTS / 2
        assert score > 0.8
    else:
        assert refused == 0
        assert score < 0.3
