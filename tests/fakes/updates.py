"""Updates as all ranks get to know them, made up."""

from __future__ import annotations

import numpy as np

from dba3c.timings import PARTS
from dba3c.types import Update


def update(number: int = 1, samples: int = 40, seconds: tuple[float, ...] = (1.0, 2.0), **sums: float) -> Update:
    figures = {"episodes": 0.0, "score": 0.0, "episode_steps": 0.0} | {f"{part}_seconds": 0.0 for part in PARTS} | sums
    by_rank = {"compute_seconds": np.array(seconds), "max_lag": np.array([0.0, float(number)])}
    return Update(number, samples, samples // 2, True, False, figures, by_rank)
