"""Faults and delays on purpose: what is planned happens, and what cannot be planned is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from dba3c.config.messages import ConfigError
from dba3c.timings import Timings
from dba3c.training.injected import KINDS, StaleLearner, Straggler, planned
from dba3c.training.injected import timings as make_timings
from dba3c.types import Batch, Gradient
from tests.fakes.batches import batch_of
from tests.fakes.settings import settings

FAULTS = st.builds("{}:{}:{}".format, st.integers(), st.integers(), st.sampled_from([*KINDS, "kil"]))


def test_stragglers_on_purpose() -> None:
    config = settings("debug.slow_rank=1,3").debug
    assert type(make_timings(config, 0)) is Timings
    slow = make_timings(config, 1)
    with slow.measure("env"):
        sum(range(200_000))
    honest = Timings()
    with honest.measure("env"):
        sum(range(200_000))
    assert slow.seconds["env"] > 1.5 * honest.seconds["env"]
    with slow.measure("wait"):  # only computing is slowed down
        pass
    assert slow.seconds["wait"] < 0.001


class Counting:
    """A learner whose gradients are numbered."""

    def __init__(self) -> None:
        self._number = 0

    def gradients(self, _batch: Batch) -> Iterator[Gradient]:
        self._number += 1
        yield Gradient(np.array([self._number], np.float32), 1, 1, 0, {}, {})


def test_gradients_wait_for_as_many_others_as_asked_for() -> None:
    learner = StaleLearner(Counting(), 2)
    given = [[float(g.mean[0]) for g in learner.gradients(batch_of(1, 1))] for _ in range(5)]
    assert given == [[], [], [1.0], [2.0], [3.0]]


def test_random_delays_hit_their_share_of_steps() -> None:
    straggler = Straggler(1.0, (0.25, 4.0), 0)
    factors = [straggler.draw_factor("env") for _ in range(4000)]
    assert set(factors) == {1.0, 4.0}
    assert np.mean(np.array(factors) == 4.0) == pytest.approx(0.25, abs=0.03)
    assert straggler.draw_factor("gradient") == 1.0


@examples(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=20) | FAULTS)
def test_any_plan_is_taken_or_refused_with_what_to_write(text: str) -> None:
    said = "taken"
    try:
        planned(text)
    except ConfigError as error:
        said = str(error)
    assert said == "taken" or "RANK:UPDATE:KIND" in said or "no such kind" in said


@pytest.mark.parametrize("text", [f"{'9' * 5000}:1:kill", f"1:{'9' * 5000}+:nan", f"1:1:{'x' * 5000}"])
def test_a_number_or_name_without_end_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        planned(text)
    assert len(str(refused.value)) < 500
