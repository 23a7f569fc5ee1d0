"""The model of a fixed effective batch, where its answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.benchmarks.prediction.strong import Core, Exchange, Layout, best, layouts, paces

ONE = Core(1, 5, np.full(20, 0.006))
FOUR = Core(4, 20, np.full(20, 0.018))  # less than four times as long: larger calls
FREE = Exchange(0.0, 0.0, 0.0)


def test_layouts_have_the_effective_batch_and_fit_the_nodes() -> None:
    found = list(layouts(240, 4, 12, [ONE, FOUR]))
    assert {(layout.ranks_per_node, layout.cores_per_rank, layout.core.simulators) for layout in found} == {
        (1, 12, 1), (2, 6, 1), (3, 4, 1), (4, 3, 1), (6, 2, 1), (12, 1, 1),  # 48 cores × 5 samples
        (1, 3, 4), (3, 1, 4),  # 12 cores × 20 samples
    }  # fmt: skip
    assert all(layout.batch == 240 for layout in found)


def test_a_batch_that_is_too_small_or_too_large_has_no_layout() -> None:
    assert best(20, 64, 12, [ONE, FOUR], FREE) is None
    assert best(10**6, 1, 12, [ONE, FOUR], FREE) is None


def test_steady_cores_by_hand() -> None:
    """Twelve ranks of two cores: 6 ms, two rounds of 1 ms among the four of a node, 0.5 ms for the second shard."""
    layout = Layout(nodes=3, ranks_per_node=4, cores_per_rank=2, core=ONE)
    exchange = Exchange(between_nodes=0.0025, between_ranks=0.001, between_shards=0.0005)
    pace = next(paces(layout, exchange))
    assert pace.updates_per_second == pytest.approx(1 / (0.006 + 0.0025 + 0.002 + 0.0005))
    assert pace.samples_per_second == pytest.approx(120 * pace.updates_per_second)


def test_more_cores_with_fewer_simulators_win_while_messages_are_free() -> None:
    found = best(240, 4, 12, [ONE, FOUR], FREE)
    assert found is not None
    assert found.layout.core is ONE
    costly = best(240, 4, 12, [ONE, FOUR], Exchange(0.0, 0.02, 0.02))
    assert costly is not None
    assert costly.layout.core is FOUR


def test_a_rank_waits_for_its_slowest_shard() -> None:
    uneven = Core(1, 5, np.array([0.01, 0.03]))
    alone = next(paces(Layout(1, 1, 1, uneven), FREE))
    together = next(paces(Layout(1, 1, 8, uneven), FREE))
    assert 1 / alone.updates_per_second == pytest.approx(0.02, rel=0.1)
    assert 1 / together.updates_per_second == pytest.approx(0.03 - 0.02 / 2**8, rel=0.02)
