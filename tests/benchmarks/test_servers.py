"""The simulation of asynchronous workers, where its answer is known."""

from __future__ import annotations

import pytest

from dba3c.benchmarks.emulated_ranks import Pattern
from dba3c.benchmarks.servers import Costs, simulate_served

MESSAGE = 0.01


def test_ranks_that_wait_for_no_other_add_their_paces() -> None:
    slow = Pattern(0.1, slow_rank=2, factor=3.0)
    found = simulate_served(4, 1, slow.draw, Costs(travel=MESSAGE))
    assert found.updates_per_second == pytest.approx(3 / 0.11 + 1 / 0.31, rel=0.01)
    delayed = Pattern(0.1, delayed=0.1, delay=5.0)
    found = simulate_served(2, 1, delayed.draw, Costs(travel=MESSAGE))
    assert found.updates_per_second == pytest.approx(2 / (0.14 + MESSAGE), rel=0.02)


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_equal_ranks_are_as_stale_as_there_are_others(ranks: int) -> None:
    found = simulate_served(ranks, 1, Pattern(0.1).draw, Costs(travel=MESSAGE))
    assert found.staleness == pytest.approx(ranks - 1, abs=0.01)


def test_busy_servers_set_the_pace() -> None:
    """Eight ranks want 80 updates/s; the servers can do 50, and 8 / (0.1 + 0.01) where they can do more."""
    found = simulate_served(8, 1, Pattern(0.1).draw, Costs(servers=0.02))
    assert found.updates_per_second == pytest.approx(50, rel=0.01)
    found = simulate_served(8, 1, Pattern(0.1).draw, Costs(servers=0.01))
    assert found.updates_per_second == pytest.approx(8 / 0.11, rel=0.01)


def test_ranks_of_a_node_share_its_link() -> None:
    """Each of two nodes can send 20 updates/s, of the 40 that its four ranks compute."""
    found = simulate_served(8, 4, Pattern(0.1).draw, Costs(link=0.05))
    assert found.updates_per_second == pytest.approx(2 * 20, rel=0.01)
