"""Asynchronous strategies on real ranks: one worker equals the all-reduce, any order its serial transcription."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from dba3c.comm import asynchronous
from dba3c.comm.allreduce import AllReduce, Surroundings
from dba3c.config import loading, names
from dba3c.learning.optimizers import FlatOptimizer
from dba3c.timings import Timings
from dba3c.types import Array, Clock, Gradient, Transport, Update
from tests.fakes.loopback import Loopback

PARAMETERS = 1003
STRATEGIES = ("server", "hogwild")
OPTIMIZERS = tuple(names.PARTS["optimizer.name"])

pytestmark = pytest.mark.skipif(os.environ.get("DBA3C_TRANSPORT") == "horovod", reason="asynchronous needs mpi")


def gradient_of(rank: int, version: int, samples: int = 5) -> Gradient:
    mean = np.random.default_rng((rank, version)).normal(size=PARAMETERS).astype(np.float32)
    by_rank = {"max_lag": 0.0}
    return Gradient(mean, samples, samples, version, {"score": 1.0}, by_rank)


def new_optimizer(name: str = "adam", *words: str) -> FlatOptimizer:
    config = loading.load("a2c", [f"optimizer.name={name}", "optimizer.schedule=linear", *words]).optimizer
    first = np.random.default_rng(7).normal(size=PARAMETERS).astype(np.float32)
    return FlatOptimizer(config, tf.Variable(first), 20.0)


class Rank:
    """One rank with a real optimizer, whose gradients tell which rank and which weights they come from."""

    def __init__(
        self,
        transport: Transport,
        strategy: str,
        optimizer: FlatOptimizer,
        owners: tuple[int, ...] = (0,),
        meets_after: Callable[[int], bool] = lambda _: False,
        total_steps: int = 200,
        aggregate: int = 1,
        between: tuple[int, int] = (0, 10**9),
    ) -> None:
        """It starts after the first update of `between` and leaves after the last."""
        first, self._last = between
        words = [f"comm.strategy={strategy}", f"comm.aggregate={aggregate}"]
        config = loading.load("a2c", words).comm
        self.transport = transport
        self.optimizer = optimizer
        self.clock = Clock(first, 5 * first, total_steps)
        around = Surroundings(transport, optimizer, Timings(), self.clock, self.follow, meets_after, owners)
        self.strategy = names.find("comm.strategy", strategy)(config, around)

    def follow(self, update: Update, clock: Clock) -> None:
        assert update.number == clock.updates == self.clock.updates + 1
        self.clock = clock

    @property
    def done(self) -> bool:
        return self.clock.steps >= self.clock.total_steps or self.clock.updates >= self._last

    def play(self, delay: Callable[[], float] = lambda: 0.0) -> None:
        while not self.done:
            time.sleep(delay())
            self.strategy.update(gradient_of(self.transport.rank, self.clock.updates), lambda: False)

    def serve(self) -> None:
        """Be a rank without simulators."""
        while not self.done:
            self.strategy.update(None, lambda: False)


def alone(optimizer: FlatOptimizer, rank: int, total_steps: int = 200) -> None:
    """Learn from the gradients of one rank by the all-reduce of a single rank."""
    clock = Clock(0, 0, total_steps)
    around = Surroundings(Loopback(), optimizer, Timings(), clock)
    strategy = AllReduce(loading.load("a2c").comm, around)
    while strategy.clock.steps < total_steps:
        strategy.update(gradient_of(rank, strategy.clock.updates), lambda: False)


def same(one: FlatOptimizer, other: FlatOptimizer) -> None:
    np.testing.assert_array_equal(one.weights(), other.weights())
    mine, theirs = one.state(), other.state()
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_worker_and_any_number_of_slices_equal_the_allreduce(transport: Transport, optimizer: str) -> None:
    """To the last bit, on every rank: the last rank plays, and all of them own a slice."""
    learned = new_optimizer(optimizer)
    rank = Rank(transport, "server", learned, tuple(range(transport.size)))
    worker = transport.size - 1
    rank.play() if transport.rank == worker else rank.serve()
    transport.gather(0)
    rank.strategy.close()
    expected = new_optimizer(optimizer)
    alone(expected, worker)
    same(learned, expected)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_hogwild_with_one_worker_equals_the_allreduce(transport: Transport, optimizer: str) -> None:
    learned = new_optimizer(optimizer)
    rank = Rank(transport, "hogwild", learned)
    rank.play() if transport.rank == 0 else rank.serve()
    transport.gather(0)
    rank.strategy.close()
    expected = new_optimizer(optimizer)
    alone(expected, 0)
    same(learned, expected)


def serially(order: list[int]) -> list[Array]:
    """Apply gradients in this order, each computed with the weights that its rank got last; the weights after each."""
    optimizer = new_optimizer()
    clock = Clock(0, 0, 5 * len(order))
    version = dict.fromkeys(order, 0)
    after = []
    for number, rank in enumerate(order, 1):
        gradient = gradient_of(rank, version[rank]).mean
        optimizer.apply(gradient * np.float32(5) / np.float32(5), clock)
        clock = clock._replace(updates=number, steps=5 * number)
        version[rank] = number
        after.append(optimizer.weights())
    return after


def take_turns(rank: Rank, order: list[int], expected: list[Array]) -> None:
    """Update in this order, and end at the last meeting; `expected` are the weights after each update."""
    for number, turn in enumerate(order, 1):
        if turn == rank.transport.rank:
            mine = gradient_of(turn, rank.clock.updates)
            rank.strategy.update(mine, lambda: False)
            assert rank.clock.updates == number
            np.testing.assert_array_equal(rank.optimizer.weights(), expected[number - 1])
        rank.transport.gather(0)  # everyone waits for whose turn it is
    rank.play()  # those whose turn was not the last one come to the last meeting
    rank.transport.gather(0)
    rank.strategy.close()
    np.testing.assert_array_equal(rank.optimizer.weights(), expected[-1])


def test_ranks_without_simulators_hear_of_updates_long_before_they_meet(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the clerk would keep all of them for these ranks, and look through them with every gradient."""
    monkeypatch.setattr(asynchronous, "NEWS_SECONDS", 0.02)
    rank = Rank(transport, "server", new_optimizer("sgd"))
    heard = [0]
    if transport.rank == transport.size - 1:
        rank.play(lambda: 0.01)  # 40 times
    else:
        while not rank.done:
            heard += [rank.strategy.update(None, lambda: False)[-1].number]
    transport.gather(0)
    rank.strategy.close()
    assert max(np.diff(heard), default=0) < 40


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_forced_order_of_tickets_equals_its_serial_transcription(transport: Transport, strategy: str) -> None:
    order = np.random.default_rng(3).integers(0, transport.size, 30).tolist()
    owners = tuple(range(min(2, transport.size)))
    rank = Rank(transport, strategy, new_optimizer(), owners, total_steps=5 * len(order))
    take_turns(rank, order, serially(order))


def test_each_rank_can_have_statistics_of_its_own(transport: Transport) -> None:
    """In shared memory; what is saved at a meeting is their mean."""
    words = "rmsprop", "comm.strategy=hogwild", "optimizer.shared=false", "optimizer.momentum=0.5"
    order = np.random.default_rng(4).integers(0, transport.size, 30).tolist()
    serial = new_optimizer(*words)
    weights, first = serial.weights(), serial.state()
    slots = [{name: first[name].copy() for name in ("mean_square", "momentum")} for _ in range(transport.size)]
    version = [0] * transport.size
    expected = []
    for done, turn in enumerate(order):
        gradient = gradient_of(turn, version[turn]).mean
        gradient = gradient * np.float32(5) / np.float32(5)
        serial.apply_to(weights, slots[turn], gradient, Clock(done, 5 * done, 150), done, serial.scale(gradient))
        version[turn] = done + 1
        expected.append(weights.copy())
    rank = Rank(transport, "hogwild", new_optimizer(*words), total_steps=150)
    take_turns(rank, order, expected)
    for name, values in rank.optimizer.state().items():
        mean = 30 if name == "steps" else np.mean([own[name] for own in slots], axis=0)
        np.testing.assert_array_equal(values, mean, err_msg=name)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_that_was_saved_at_a_meeting_continues_as_if_it_had_not_ended(
    transport: Transport, strategy: str
) -> None:
    """With one worker, whose order is known; the other ranks own slices."""
    owners = tuple(range(transport.size))
    learned = new_optimizer()
    for first in (0, 20):  # the second part starts from the weights and slots that the first one ended with
        resumed = new_optimizer()
        resumed.load(learned.weights())
        resumed.restore(learned.state())
        part = first, first + 20
        rank = Rank(transport, strategy, resumed, owners, lambda number: number == 20, between=part)
        rank.play() if transport.rank == 0 else rank.serve()
        transport.gather(0)
        rank.strategy.close()
        learned = resumed
    expected = new_optimizer()
    alone(expected, 0)
    same(learned, expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_after_every_meeting_all_ranks_have_the_same_state(transport: Transport, strategy: str) -> None:
    draw = np.random.default_rng(transport.rank)
    learned = new_optimizer()
    owners = tuple(range(min(3, transport.size)))
    rank = Rank(transport, strategy, learned, owners, lambda number: number % 7 == 0, total_steps=5 * 40)
    while not rank.done:
        time.sleep(draw.exponential(0.002))
        updates = rank.strategy.update(gradient_of(transport.rank, rank.clock.updates), lambda: False)
        if updates[-1].number % 7 == 0 or rank.done:
            everyone = transport.gather((rank.clock.updates, learned.weights(), learned.state()))
            for updates_there, weights, state in everyone:
                assert updates_there == rank.clock.updates
                np.testing.assert_array_equal(weights, everyone[0][1])
                assert all(np.array_equal(state[name], everyone[0][2][name]) for name in state)
    transport.gather(0)
    rank.strategy.close()
    assert rank.clock.updates == 40


def test_gradients_in_groups_are_averaged_by_their_samples(transport: Transport) -> None:
    """Synchronous training through servers: as the all-reduce, up to rounding."""
    learned = new_optimizer("sgd")
    rank = Rank(transport, "server", learned, (0,), aggregate=transport.size, total_steps=50)
    expected = new_optimizer("sgd")
    clock = rank.clock
    while not rank.done:
        samples = 1 + transport.rank
        mine = gradient_of(transport.rank, rank.clock.updates, samples)
        parts = transport.gather((mine.mean * expected.scale(mine.mean), samples))
        total = sum(samples for _, samples in parts)
        expected.apply(sum(mean * np.float32(n) for mean, n in parts) / np.float32(total), clock, 1.0)
        clock = clock._replace(updates=clock.updates + 1, steps=clock.steps + total)
        rank.strategy.update(mine, lambda: False)
        np.testing.assert_allclose(learned.weights(), expected.weights(), rtol=1e-5, atol=1e-6)
    transport.gather(0)
    rank.strategy.close()
