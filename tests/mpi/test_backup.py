"""Backup workers: exact quorum, late gradients never applied, equal weights, and a clean end whoever is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dba3c.comm.allreduce import Surroundings
from dba3c.config import names
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.types import Array, Clock, Gradient, Strategy, Transport, Update
from tests.fakes.settings import settings

PARAMETERS = 200
Delay = Callable[[int, int], float]  # rank, version → seconds of computing


class Descent:
    """Plain gradient descent that keeps what it was given."""

    def __init__(self) -> None:
        self.weights = np.zeros(PARAMETERS, np.float32)
        self.given: list[Array] = []

    def apply(self, gradient: Array, clock: Clock) -> None:
        self.given.append(gradient.copy())
        self.weights -= np.float32(0.01 * (1 - clock.done)) * gradient

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        assert not state


class Rank:
    """A rank whose computing is a sleep and whose gradient tells which rank and which weights it comes from."""

    def __init__(self, transport: Transport, strategy: str, n_backup: int, updates: int, **more: Any) -> None:
        config = settings(f"comm.strategy={strategy}", f"comm.n_backup={n_backup}").comm
        self.transport, self.optimizer, self.progress = transport, Descent(), Progress()
        self.total = updates * (transport.size - n_backup)
        self.updates: list[Update] = []
        self.calls = 0
        around = Surroundings(transport, self.optimizer, Timings(), Clock(0, 0, self.total), self.follow, **more)
        self.version = 0
        self.strategy: Strategy = names.find("comm.strategy", strategy)(config, around)

    def follow(self, update: Update, clock: Clock) -> None:
        assert update.number == clock.updates == self.version + 1
        self.version = update.number

    def run(self, delay: Delay, stop: Callable[[int], bool] = lambda _: False) -> None:
        rank, ended = self.transport.rank, False
        while not ended:
            version = self.version
            time.sleep(delay(rank, version))
            self.calls += 1
            for update in self.strategy.update(gradient_of(rank, version), lambda at=version: stop(at)):
                self.progress.count(update)
                self.updates.append(update)
                ended = update.stop or self.progress.steps >= self.total
        self.strategy.close()


def gradient_of(rank: int, version: int) -> Gradient:
    mean = np.random.default_rng((rank, version)).normal(size=PARAMETERS).astype(np.float32)
    mean[0], mean[1] = version, rank
    return Gradient(mean, 1, 1, version, {"score": 1.0}, {"max_lag": 0.0})


def random_delay(rank: int, version: int) -> float:
    return float(np.random.default_rng((7, rank, version)).exponential(0.0004))


def late_in_turn(size: int) -> Delay:
    """Short delays at random; after every 25th update one of the ranks in turn takes long enough to be late."""

    def delay(rank: int, version: int) -> float:
        turn, rest = divmod(version, 25)
        return 0.02 if rest == 20 and turn % size == rank else random_delay(rank, version)

    return delay


def slow_last(size: int, factor: float, seconds: float = 0.004) -> Delay:
    return lambda rank, _: seconds * (factor if rank == size - 1 else 1.0)


def test_without_backups_it_is_the_allreduce_bit_for_bit(transport: Transport) -> None:
    ranks = [Rank(transport, strategy, 0, updates=40) for strategy in ("allreduce", "backup")]
    for rank in ranks:
        rank.run(random_delay)
    plain, backup = ranks
    assert plain.optimizer.weights.tobytes() == backup.optimizer.weights.tobytes()
    assert [given.tobytes() for given in plain.optimizer.given] == [given.tobytes() for given in backup.optimizer.given]
    assert not any(update.by_rank["late"].any() for update in backup.updates)


@pytest.mark.parametrize("n_backup", [1, 2])
def test_quorum_is_exact_and_late_gradients_are_never_applied(transport: Transport, n_backup: int) -> None:
    if n_backup >= transport.size:
        pytest.skip("no rank would be left")
    rank = Rank(transport, "backup", n_backup, updates=2000 if (transport.size, n_backup) == (4, 1) else 300)
    rank.run(late_in_turn(transport.size))
    assert [update.number for update in rank.updates] == list(range(1, len(rank.updates) + 1))
    for update, given in zip(rank.updates, rank.optimizer.given, strict=True):
        present = np.flatnonzero(update.by_rank["late"] == 0)
        expected = transport.size - (n_backup if update.number > 1 else 0)
        assert len(present) == update.samples == expected
        assert sorted(update.by_rank["place"][present]) == list(range(expected))
        vectors = [gradient_of(int(number), update.number - 1).mean for number in present]
        np.testing.assert_allclose(given, np.mean(vectors, axis=0), rtol=1e-4, atol=1e-4)
    assert len({weights.tobytes() for weights in transport.gather(rank.optimizer.weights)}) == 1
    late = sum(update.by_rank["late"] for update in rank.updates)
    assert (late > 0).all(), "every rank is late now and then"


def test_one_slow_rank_holds_up_no_other(transport: Transport) -> None:
    if transport.size < 3:
        pytest.skip("needs a majority")
    rank = Rank(transport, "backup", 1, updates=60)
    rank.run(slow_last(transport.size, factor=6.0, seconds=0.02))
    late = sum(update.by_rank["late"] for update in rank.updates) / len(rank.updates)
    assert late[-1] > 0.8
    assert (late[:-1] < 0.2).all()
    if transport.rank == transport.size - 1:  # it learned of several updates at once
        assert rank.calls < 0.7 * len(rank.updates)


def test_no_rank_is_late_where_the_ranks_do_something_together(transport: Transport) -> None:
    if transport.size < 2:
        pytest.skip("no rank could be late")
    rank = Rank(transport, "backup", 1, updates=100, waits_for_all=lambda number: number % 10 == 0)
    rank.run(random_delay)
    for update in rank.updates:
        together = (update.number - 1) % 10 == 0
        assert update.by_rank["late"].sum() == (0 if together else 1), update.number


def test_a_stop_is_heard_from_a_rank_that_is_late(transport: Transport) -> None:
    if transport.size < 3:
        pytest.skip("needs a majority")
    rank = Rank(transport, "backup", 1, updates=10**6)
    slow = transport.size - 1
    rank.run(slow_last(transport.size, factor=5.0), stop=lambda version: transport.rank == slow and version > 30)
    assert rank.updates[-1].stop
    assert not any(update.stop for update in rank.updates[:-1])
    assert len(set(transport.gather(len(rank.updates)))) == 1
    assert len({weights.tobytes() for weights in transport.gather(rank.optimizer.weights)}) == 1


def test_the_end_is_clean_while_a_rank_is_late(transport: Transport) -> None:
    if transport.size < 2:
        pytest.skip("no rank could be late")
    rank = Rank(transport, "backup", 1, updates=20)
    asleep = transport.size - 1
    rank.run(lambda number, version: 0.5 if number == asleep and version == 10 else 0.001)
    assert rank.progress.steps >= rank.total
    assert len(set(transport.gather(len(rank.updates)))) == 1


def test_an_error_in_the_communication_reaches_the_main_thread(transport: Transport) -> None:
    rank = Rank(transport, "backup", 0, updates=10)

    def broken(_gradient: Array, _clock: Clock) -> None:
        raise RuntimeError("no room for weights")

    rank.optimizer.apply = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no room for weights"):
        rank.run(random_delay)
