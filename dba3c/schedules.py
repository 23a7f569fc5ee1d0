"""Numbers that change while training goes on."""

from __future__ import annotations

from typing import Literal

Schedule = Literal["constant", "linear"]


def share(schedule: Schedule, progress: float) -> float:
    """What is left of a number when `progress` (0 to 1) of the training is done."""
    return 1.0 if schedule == "constant" else max(0.0, 1.0 - progress)
