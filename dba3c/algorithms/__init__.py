"""Algorithms by name: how to act and what to minimise."""

from __future__ import annotations

from dba3c.algorithms.a3c import A3C
from dba3c.algorithms.ppo import PPO

ALGORITHMS = {"a3c": A3C, "ppo": PPO}
