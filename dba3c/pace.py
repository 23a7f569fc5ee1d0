"""How fast a run was, for its summary."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dba3c.types import PARTS, Update


class Pace:
    """Steps and seconds of training proper: from the end of the first update, without evaluation and saving."""

    def __init__(self) -> None:
        self.startup_seconds: float | None = None
        self.steps = 0
        self.seconds = 0.0
        self._parts = dict.fromkeys(PARTS, 0.0)
        self._updates, self._late = 0, np.zeros(1)  # late: updates that went ahead without each rank
        self._rebuilt = 0.0
        self._resumed = time.monotonic()

    def count(self, update: Update, started: float) -> None:
        now = time.monotonic()
        self._updates, self._late = self._updates + 1, self._late + update.by_rank.get("late", 0.0)
        self._rebuilt += update.sums["rebuilt"]
        if self.startup_seconds is None:
            self.startup_seconds = now - started  # the first update compiles
        else:
            self.steps += update.steps
            self.seconds += now - self._resumed
            self._parts = {part: spent + update.sums[f"{part}_seconds"] for part, spent in self._parts.items()}

    def figures(self, ranks: int) -> dict[str, Any]:
        rank_seconds = max(self.seconds * ranks, 1e-9)
        shares = {part: spent / rank_seconds for part, spent in self._parts.items()}
        return {
            "startup_seconds": self.startup_seconds,
            "steps_per_second": self.steps / self.seconds if self.seconds else None,
            "shares": shares | {"other": 1 - sum(shares.values())},
            "rebuilt": int(self._rebuilt),
            "dropped": int(self._late.sum()),
            "late_share_by_rank": (self._late / max(self._updates, 1)).tolist(),
        }

    def resume(self) -> None:
        self._resumed = time.monotonic()
