"""The model behind predictions, where its answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.benchmarks import emulated_ranks
from dba3c.benchmarks.prediction import links, weak
from dba3c.benchmarks.prediction.links import LINKS, Link
from dba3c.benchmarks.prediction.weak import Measured

STEADY = Measured(
    np.full(50, 0.1), 80, message_bytes=1.4e6, inside_seconds=0.001, ticket_seconds=2e-4, push_seconds=1e-3
)


def test_messages_by_hand() -> None:
    """8 nodes: 3 rounds of halving and 3 of doubling; 7/8 of the message is sent twice."""
    link = Link(latency=1e-3, bandwidth=1e6)
    assert links.allreduce_seconds(8, link, 8e3) == pytest.approx(6e-3 + 2 * 7e3 / 1e6)
    assert links.allreduce_seconds(1, link, 8e3) == 0.0


def test_a_node_adds_its_ranks_before_the_network_is_used() -> None:
    assert weak.message_seconds(1, 8, LINKS["1g"], STEADY) == pytest.approx(0.003)
    assert weak.message_seconds(1, 1, LINKS["1g"], STEADY) == 0.0


def test_steady_ranks_lose_the_time_of_the_message_only() -> None:
    found = weak.forecast(64, 12, "10g", STEADY)
    message = weak.message_seconds(64, 12, LINKS["10g"], STEADY)
    assert found.efficiency == pytest.approx(0.1 / (0.1 + message), rel=1e-3)
    assert found.strategy == "allreduce"
    assert found.points_per_second == pytest.approx(found.efficiency * 64 * 12 * 800, rel=1e-3)


def test_backups_save_many_nodes_from_rare_stragglers() -> None:
    """One gradient in 400 takes 0.5 s instead of 0.1 s: among 768 ranks there nearly always is one."""
    rare = STEADY._replace(compute_seconds=np.array([0.1] * 399 + [0.5]), inside_seconds=0.0)
    found = weak.forecast(64, 12, "100g", rare)
    steps = weak.segments(768, rare.compute_seconds)
    without = emulated_ranks.simulate(768, 0, steps, message_seconds=0.0, updates=300)
    assert 1 / without == pytest.approx(0.1 + 0.4 * (1 - (399 / 400) ** 768), rel=0.05)
    assert found.seconds_per_update < 0.11
    assert found.strategy.startswith("backup ")
    assert found.efficiency > 0.9


def test_a_faster_network_is_never_worse() -> None:
    rows = weak.forecasts([16], ["1g", "10g", "100g"], 12, 4, STEADY)
    for strategy in ("allreduce", "server 4"):
        efficiencies = [row["efficiency"] for row in rows if row["strategy"] == strategy]
        assert efficiencies == sorted(efficiencies)
        assert len(efficiencies) == 3


def test_servers_by_hand() -> None:
    """A quarter of 1.2 MB over 120 MB/s takes 2.5 ms, longer than a ticket; copying takes 0.2 ms a quarter."""
    link = Link(latency=1e-4, bandwidth=1.2e8)
    costs = weak.served_costs(8, 4, link, STEADY._replace(message_bytes=1.2e6))
    assert costs == pytest.approx((0.01, 0.0025, 0.0025 + 2e-4 + 4e-4))
    assert weak.served_costs(1, 4, link, STEADY) == pytest.approx((0.0, 2e-4, 2e-4))


def test_many_workers_wait_for_the_links_of_few_servers() -> None:
    """64 × 12 workers at 10 Hz want 7680 updates/s; four links of 10 Gbit/s carry 3357 messages of 1.4 MB."""
    found = weak.forecast_served(64, 12, "10g", 4, STEADY)
    carried = 4 * LINKS["10g"].bandwidth / 1.4e6
    assert 1 / found.seconds_per_update == pytest.approx(carried, rel=0.01)
    assert found.efficiency == pytest.approx(carried / 7680, rel=0.02)
    assert found.staleness == pytest.approx(64 * 12 - 1, rel=0.01)
