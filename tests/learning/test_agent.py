"""The agent: gradients of a network that remembers equal those of a plain loop over the steps; the loss's scale."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from dba3c import networks
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent, one_sample_like
from dba3c.networks import MEMORY
from dba3c.training import build
from dba3c.types import BY_TIME, Array, Batch
from tests.fakes.batches import batch_of, spaces
from tests.fakes.settings import settings

STEPS, SIMULATORS, CELLS = 6, 4, 5
PPO = ("algorithm.name=ppo", "algorithm.passes=2", "algorithm.minibatches=2", "actor.n_steps=6", "env.n_sim=4")
SPACES = spaces(3)


def remembering(*more: str) -> Config:
    return settings("model.hidden=8", f"model.memory={CELLS}", "algorithm.clip=none", *more)


@cache
def agent_of(*more: str) -> Agent:
    """Make an agent once: compiling takes seconds, and no test changes the weights."""
    return build.agent_for(remembering(*more), SPACES)


def batch() -> Batch:
    """Random play, in which episodes end at the first, an inner and the last step, and twice in a row."""
    random = np.random.default_rng(0)
    states = (STEPS + 1, SIMULATORS)
    ended = np.zeros((STEPS, SIMULATORS), bool)
    ended[[0, 2, 3, 5], [0, 1, 1, 2]] = True
    return batch_of(
        STEPS,
        SIMULATORS,
        observations=random.integers(256, size=(*states, 1, 20, 20)).astype(np.uint8),
        actions=random.integers(3, size=states).astype(np.int32),
        log_probabilities=np.log(random.uniform(0.2, 0.5, size=states)[1:]).astype(np.float32),
        rewards=random.normal(size=(STEPS, SIMULATORS)).astype(np.float32),
        discounts=np.where(ended, 0, 0.9).astype(np.float32),
        ended=ended,
        values=random.normal(size=states).astype(np.float32),
        memory=random.normal(size=(SIMULATORS, 2 * CELLS)).astype(np.float32),
    )


def slow_gradient(config: Config, agent: Agent, played: Batch, simulators: list[int]) -> Array:
    """The gradient of the mean loss over these simulators: step by step, forgetting after each end, as actors do."""
    net = networks.build(config.model, SPACES, agent.algorithm.heads, seed=0)
    weights, memory = tf.constant(agent.weights.numpy()), tf.constant(played.memory[simulators])
    columns = agent.algorithm.columns(played, agent.clock, lambda *_: {})
    parts: dict[str, list[tf.Tensor]] = {name: [] for name in agent.algorithm.heads}
    with tf.GradientTape() as tape:
        tape.watch(weights)
        for t in range(STEPS):
            if t > 0:
                memory = tf.stack(
                    [
                        tf.zeros_like(row) if played.ended[t - 1, simulator] else row
                        for row, simulator in zip(tf.unstack(memory), simulators, strict=True)
                    ]
                )
            nowhere = tf.zeros((1, len(simulators)), tf.bool)
            prepared = net.prepare(played.observations[t, simulators])
            seen = tf.constant(prepared.numpy())  # a copy, as later steps are prepared in the same place
            outputs = net.forward(weights, seen, memory, nowhere)
            memory = outputs[MEMORY]
            for name, steps in parts.items():
                steps.append(outputs[name])
        joined = {name: tf.concat(steps, 0) for name, steps in parts.items()}
        chosen = {name: column[:, simulators].reshape(-1) for name, column in columns.items()}
        loss, _ = agent.algorithm.loss(joined, **chosen)
    gradient: Array = tape.gradient(loss, weights).numpy()
    return gradient


def test_gradient_is_that_of_the_unrolled_loop() -> None:
    config = remembering()
    agent = agent_of()
    (found,) = agent.gradients(batch())
    expected = slow_gradient(config, agent, batch(), list(range(SIMULATORS)))
    names = dict(zip(agent.layout.names, agent.layout.unpack(tf.constant(expected)), strict=True))
    assert np.abs(names["memory/recurrent"]).max() > 1e-3
    np.testing.assert_allclose(found.mean, expected, rtol=1e-4, atol=1e-6)
    assert (found.samples, found.steps) == (STEPS * SIMULATORS, STEPS * SIMULATORS)


def test_gradient_depends_on_the_memory_at_the_start_and_on_the_ends() -> None:
    agent = agent_of()
    forgotten = batch()._replace(memory=np.zeros((SIMULATORS, 2 * CELLS), np.float32))
    endless = batch()._replace(ended=np.zeros((STEPS, SIMULATORS), bool))
    (usual, *others) = (next(agent.gradients(played)).mean for played in (batch(), forgotten, endless))
    assert all(np.abs(other - usual).max() > 1e-3 for other in others)


def test_ppo_learns_from_whole_sequences_of_some_simulators() -> None:
    config = remembering(*PPO)
    agent = agent_of(*PPO)
    halves = [slow_gradient(config, agent, batch(), some) for some in ([0, 2], [1, 3])]
    found = [gradient.mean for gradient in agent.gradients(batch())]
    assert len(found) == 4
    for both in (found[:2], found[2:]):  # each pass, in whichever order
        order = sorted(range(2), key=lambda half: np.abs(both[0] - halves[half]).max())
        for mean, half in zip(both, order, strict=True):
            np.testing.assert_allclose(mean, halves[half], rtol=1e-3, atol=1e-5)


def test_acting_step_by_step_sees_what_the_segment_sees() -> None:
    """The log-probabilities of an actor's segment are those that the loss computes with the same weights."""
    agent = agent_of(*PPO)
    played = batch()
    memory, chosen = played.memory, []
    for t in range(STEPS):
        noise = np.full((SIMULATORS, 1), 0.5, np.float32)
        prediction = agent.act(played.observations[t], noise, np.arange(SIMULATORS), memory)
        memory = np.where(played.ended[t][:, np.newaxis], np.float32(0), prediction.memory)
        chosen.append(prediction)
    actions = np.stack([*(prediction.actions for prediction in chosen), played.actions[-1]])
    log_probabilities = np.stack([prediction.log_probabilities for prediction in chosen])
    advantages = {"rewards": np.ones_like(played.rewards), "values": np.zeros_like(played.values)}
    replayed = played._replace(actions=actions, log_probabilities=log_probabilities, **advantages)
    expected = agent.algorithm.columns(replayed, agent.clock, lambda *_: {})["advantages"]
    found = [gradient.sums["policy_loss"] for gradient in agent.gradients(replayed)]
    assert sum(found[:2]) == pytest.approx(-expected.sum(), rel=1e-5)  # all ratios are one


def test_greedy_actions_remember_what_sampled_ones_do() -> None:
    agent = agent_of()
    played = batch()
    noise = np.full((SIMULATORS, 1), 0.5, np.float32)
    sampled = agent.act(played.observations[0], noise, np.arange(SIMULATORS), played.memory).memory
    np.testing.assert_allclose(agent.greedy(played.observations[0], played.memory)[1], sampled, rtol=1e-6)
    assert np.abs(sampled - played.memory).max() > 0.1


def test_loss_scale_multiplies_the_gradient() -> None:
    usual, scaled = (next(agent.gradients(batch())) for agent in (agent_of(), agent_of("algorithm.loss_scale=5")))
    np.testing.assert_allclose(scaled.mean, 5 * usual.mean, rtol=1e-5, atol=1e-7)
    assert scaled.sums["gradient_norm"] == pytest.approx(5 * usual.sums["gradient_norm"], rel=1e-5)
    assert scaled.sums["policy_loss"] == usual.sums["policy_loss"]


def test_a_made_up_sample_has_the_types_and_times_of_its_batch() -> None:
    played = batch_of(STEPS, 0)
    made_up = one_sample_like(played)
    assert made_up.samples == STEPS
    for name in BY_TIME:
        before, now = getattr(played, name), getattr(made_up, name)
        assert (now.dtype, len(now), now.shape[2:]) == (before.dtype, len(before), before.shape[2:]), name
