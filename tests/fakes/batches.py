"""Batches of which a test states only what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from dba3c.types import Batch, Spaces


def spaces(n_actions: int = 6, shape: tuple[int, ...] = (1, 20, 20)) -> Spaces:
    return Spaces(Box(0, 255, shape, np.uint8), Discrete(n_actions, dtype=np.int32))


def batch_of(steps: int, simulators: int, **arrays: Any) -> Batch:
    """A batch of T steps × B simulators; what is not given is zero."""
    by_step, by_state = (steps, simulators), (steps + 1, simulators)
    zeros = Batch(
        observations=np.zeros((*by_state, 1, 1, 1), np.uint8),
        actions=np.zeros(by_state, np.int32),
        log_probabilities=np.zeros(by_step, np.float32),
        rewards=np.zeros(by_step, np.float32),
        discounts=np.zeros(by_step, np.float32),
        past_returns=np.zeros(by_step, np.float32),
        ended=np.zeros(by_step, bool),
        values=np.zeros(by_state, np.float32),
        versions=np.zeros(by_step, np.int64),
        memory=np.zeros((simulators, 0), np.float32),
        steps=steps * simulators,
        episodes=[],
    )
    return zeros._replace(**arrays)
