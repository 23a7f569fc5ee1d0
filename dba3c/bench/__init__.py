"""Measure speed on this machine: what each part costs, and how near to their sum the trainer comes."""

from __future__ import annotations

from dba3c.bench.command import main

__all__ = ["main"]
