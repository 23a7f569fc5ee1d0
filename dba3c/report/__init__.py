"""One page about one run or several: curves, pace, and what differs between them."""

from __future__ import annotations

from dba3c.report.command import main

__all__ = ["main"]
