"""Targets of the value function: pure functions of time-major arrays."""

from __future__ import annotations

import numpy as np

from dba3c.types import Array


def n_step_returns(rewards: Array, discounts: Array, bootstrap: Array) -> Array:
    """R_t = r_t + d_t · R_{t+1} with R_T = bootstrap; d_t = 0 ends the episode.  [T, B], [T, B], [B] → [T, B]"""
    if rewards.shape != discounts.shape or rewards.shape[1:] != bootstrap.shape:
        raise ValueError(
            f"shapes do not fit: rewards {rewards.shape}, discounts {discounts.shape}, bootstrap {bootstrap.shape}"
        )
    returns = np.empty_like(rewards)
    following = bootstrap
    for t in reversed(range(len(rewards))):
        returns[t] = following = rewards[t] + discounts[t] * following
    return returns
