"""The page: where its words may be broken."""

from __future__ import annotations

from dba3c.reporting.html import breakable


def test_only_names_are_broken() -> None:
    assert breakable("optimizer.learning_rate = 0.1") == "optimizer.<wbr>learning_<wbr>rate = 0.1"
