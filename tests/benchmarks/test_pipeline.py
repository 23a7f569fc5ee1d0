"""The pace of training against what the costs of its parts allow."""

from __future__ import annotations

import pytest

from dba3c.benchmarks import pipeline
from dba3c.benchmarks.pipeline import Layout

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}


def test_the_bound_is_cores_over_the_sum_of_the_parts() -> None:
    assert pipeline.bound(Layout(2, 1, "lockstep", 16), MEASURED) == pytest.approx(2e6 / 750)
    assert pipeline.bound(Layout(1, 4, "lockstep", 16), MEASURED) == pytest.approx(4e6 / 750)


def test_layouts_that_give_a_core_the_same_work_share_their_parts() -> None:
    assert Layout(2, 1, "lockstep", 32, 20).sizes == Layout(1, 2, "lockstep", 64, 20).sizes
    assert Layout(2, 1, "lockstep", 32, 20).sizes != Layout(2, 1, "lockstep", 16, 20).sizes
