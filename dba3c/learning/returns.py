"""Targets of the value function: pure functions of time-major arrays."""

from __future__ import annotations

import numpy as np

from dba3c.types import Array


def generalised_advantages(rewards: Array, discounts: Array, values: Array, smoothing: float) -> Array:
    """A_t = δ_t + λ·d_t·A_{t+1} with δ_t = r_t + d_t·V_{t+1} − V_t and A_T = 0.  [T, B], [T, B], [T + 1, B] → [T, B]

    λ = 1 gives the n-step return less the value; λ = 0 the error of one step.
    """
    if rewards.shape != discounts.shape or values.shape != (len(rewards) + 1, *rewards.shape[1:]):
        raise ValueError(
            f"shapes do not fit: rewards {rewards.shape}, discounts {discounts.shape}, values {values.shape}"
        )
    errors = rewards + discounts * values[1:] - values[:-1]
    advantages = np.empty_like(rewards)
    following = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        advantages[t] = following = errors[t] + rewards.dtype.type(smoothing) * discounts[t] * following
    return advantages


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
