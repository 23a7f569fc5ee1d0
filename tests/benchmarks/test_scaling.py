"""On how many ranks scaling is measured."""

from __future__ import annotations

from dba3c.benchmarks import scaling


def test_scaling_counts() -> None:
    assert [scaling.counts(size) for size in (1, 4, 6)] == [[1], [1, 2, 4], [1, 2, 4, 6]]
