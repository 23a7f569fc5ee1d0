"""The model behind predictions, where its answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.benchmarks import emulated_ranks, prediction
from dba3c.benchmarks.prediction import LINKS, Link, Measured

STEADY = Measured(np.full(50, 0.1), samples=80, message_bytes=1.4e6, inside_seconds=0.001)


def test_messages_by_hand() -> None:
    """8 nodes: 3 rounds of halving and 3 of doubling; 7/8 of the message is sent twice."""
    link = Link(latency=1e-3, bandwidth=1e6)
    assert prediction.allreduce_seconds(8, link, 8e3) == pytest.approx(6e-3 + 2 * 7e3 / 1e6)
    assert prediction.allreduce_seconds(1, link, 8e3) == 0.0


def test_a_node_adds_its_ranks_before_the_network_is_used() -> None:
    assert prediction.message_seconds(1, 8, LINKS["1g"], STEADY) == pytest.approx(0.003)
    assert prediction.message_seconds(1, 1, LINKS["1g"], STEADY) == 0.0


def test_steady_ranks_lose_the_time_of_the_message_only() -> None:
    found = prediction.forecast(64, 12, "10g", STEADY)
    message = prediction.message_seconds(64, 12, LINKS["10g"], STEADY)
    assert found.efficiency == pytest.approx(0.1 / (0.1 + message), rel=1e-3)
    assert found.n_backup == 0
    assert found.points_per_second == pytest.approx(found.efficiency * 64 * 12 * 800, rel=1e-3)


def test_backups_save_many_nodes_from_rare_stragglers() -> None:
    """One gradient in 400 takes 0.5 s instead of 0.1 s: among 768 ranks there nearly always is one."""
    rare = Measured(np.array([0.1] * 399 + [0.5]), samples=80, message_bytes=1.4e6, inside_seconds=0.0)
    found = prediction.forecast(64, 12, "100g", rare)
    steps = prediction.segments(768, rare.compute_seconds)
    without = emulated_ranks.simulate(768, 0, steps, message_seconds=0.0, updates=300)
    assert 1 / without == pytest.approx(0.1 + 0.4 * (1 - (399 / 400) ** 768), rel=0.05)
    assert found.seconds_per_update < 0.11
    assert found.n_backup > 0
    assert found.efficiency > 0.9


def test_a_faster_network_is_never_worse() -> None:
    rows = prediction.forecasts([16], ["1g", "10g", "100g"], 12, STEADY)
    efficiencies = [row["efficiency"] for row in rows]
    assert efficiencies == sorted(efficiencies)
