"""Statistics over few seeds, as Agarwal et al. 2021 (arXiv:2108.13264) and their library rliable define them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dba3c.types import Array

RESAMPLES = 20_000  # of the bootstrap
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """An estimate, and the interval that holds it with 95 % confidence."""

    estimate: float
    low: float
    high: float


def interquartile_mean(scores: Array, axis: int | None = None) -> Array:
    """Return the mean of the middle half: a quarter of the scores, rounded down, is left out at either end."""
    values = np.sort(np.asarray(scores, np.float64), axis=axis)  # axis None: of all of them
    count = values.shape[-1 if axis is None else axis]
    cut = count // 4
    middle = np.take(values, np.arange(cut, count - cut), axis=-1 if axis is None else axis)
    return np.asarray(middle.mean(axis=-1 if axis is None else axis))


def bootstrap(groups: list[list[float]], resamples: int = RESAMPLES) -> Interval:
    """Estimate the interquartile mean of all scores together, with a percentile interval by the stratified bootstrap.

    The scores of each group, which are those of a game's seeds, are drawn again from that group alone.
    """
    draw = np.random.default_rng(0)  # the same logs give the same page
    drawn = [draw.choice(np.array(scores), size=(resamples, len(scores))) for scores in groups]
    means = interquartile_mean(np.concatenate(drawn, axis=1), axis=1)  # [resamples]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(interquartile_mean(np.concatenate(groups))), float(low), float(high))
