"""The one message of an update: inputs differ from rank to rank, the outcome must not."""

from __future__ import annotations

import numpy as np

from dba3c.comm.allreduce import AllReduce, Surroundings
from dba3c.timings import Timings
from dba3c.types import Array, Clock, Gradient, Transport
from tests.fakes.settings import settings

PARAMETERS = 1000


class Recorder:
    """An optimizer that keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[Array] = []

    def apply(self, gradient: Array, clock: Clock) -> None:
        assert 0 <= clock.done <= 1
        self.given.append(gradient.copy())

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        assert not state


def make(transport: Transport, optimizer: Recorder, updates: int = 0, steps: int = 0) -> AllReduce:
    return AllReduce(settings().comm, Surroundings(transport, optimizer, Timings(), Clock(updates, steps, 100)))


def never() -> bool:
    return False


def gradient_of(rank: int, samples: int) -> Gradient:
    """A gradient, figures and a sample count that tell which rank they come from."""
    mean = np.random.default_rng(rank).normal(size=PARAMETERS).astype(np.float32)
    return Gradient(mean, samples, samples // 2, 0, {"score": 10.0 + rank, "episodes": 1.0}, {"max_lag": float(rank)})


def test_mean_is_weighted_by_samples(transport: Transport) -> None:
    optimizer = Recorder()
    strategy = make(transport, optimizer, updates=41, steps=50)
    update = strategy.update(gradient_of(transport.rank, 5 + 3 * transport.rank), never)[0]
    counts = [5 + 3 * rank for rank in range(transport.size)]
    gradients = [gradient_of(rank, 1).mean.astype(np.float64) for rank in range(transport.size)]
    expected = sum(n * g for n, g in zip(counts, gradients, strict=True)) / sum(counts)
    np.testing.assert_allclose(optimizer.given[0], expected, rtol=1e-5, atol=1e-6)
    assert (update.number, update.samples, update.applied, update.stop) == (42, sum(counts), True, False)
    assert update.steps == sum(count // 2 for count in counts)


def test_every_rank_gets_the_same_bits(transport: Transport) -> None:
    optimizer = Recorder()
    make(transport, optimizer).update(gradient_of(transport.rank, 7), never)[0]
    assert len({vector.tobytes() for vector in transport.gather(optimizer.given[0])}) == 1


def test_figures_are_summed_or_kept_apart_by_rank(transport: Transport) -> None:
    update = make(transport, Recorder()).update(gradient_of(transport.rank, 1), never)[0]
    assert update.sums["score"] == sum(10.0 + rank for rank in range(transport.size))
    assert update.sums["episodes"] == transport.size
    assert update.by_rank["max_lag"].tolist() == list(range(transport.size))
    assert (update.by_rank["compute_seconds"] > 0).all()


def test_one_rank_with_nan_makes_all_skip(transport: Transport) -> None:
    optimizer = Recorder()
    strategy = make(transport, optimizer)
    for bad in (np.nan, np.inf):
        gradient = gradient_of(transport.rank, 4)
        if transport.rank == transport.size - 1:
            gradient.mean[17] = bad
            gradient.sums["score"] = float("nan")
        update = strategy.update(gradient, never)[0]
        assert update.skipped
        assert not update.applied
        assert np.flatnonzero(update.by_rank["not_finite"]).tolist() == [transport.size - 1]
        assert np.isfinite(list(update.sums.values())).all()
    assert strategy.update(gradient_of(transport.rank, 4), never)[0].applied
    assert len(optimizer.given) == 1
    assert np.isfinite(optimizer.given[0]).all()


def test_a_stop_on_any_one_rank_reaches_all(transport: Transport) -> None:
    strategy = make(transport, Recorder())
    for asked in range(transport.size):
        assert strategy.update(gradient_of(transport.rank, 1), lambda asked=asked: transport.rank == asked)[0].stop
    assert not strategy.update(gradient_of(transport.rank, 1), never)[0].stop


def test_a_rank_may_bring_nothing(transport: Transport) -> None:
    """A count of zero takes a rank out of the mean: what backup workers rely on."""
    optimizer = Recorder()
    samples = 6 if transport.rank == 0 else 0
    update = make(transport, optimizer).update(gradient_of(transport.rank, samples), never)[0]
    assert update.samples == 6
    np.testing.assert_allclose(optimizer.given[0], gradient_of(0, 6).mean, rtol=1e-6, atol=1e-7)
