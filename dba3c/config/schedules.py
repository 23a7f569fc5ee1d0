"""Numbers that change with the progress of the training."""

from __future__ import annotations

from typing import Literal

Schedule = Literal["constant", "linear", "quadratic"]
POWERS: dict[Schedule, int] = {"constant": 0, "linear": 1, "quadratic": 2}


def share(schedule: Schedule, progress: float) -> float:
    """What is left of a number when `progress` (0 to 1) of the training is done."""
    return max(0.0, 1.0 - progress) ** POWERS[schedule]
