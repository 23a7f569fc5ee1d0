"""What updates add up to: over a stretch of time, over the newest episodes, over the whole run."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from dba3c.types import PARTS, Update

ONLINE_GAMES = 100  # newest finished games, of all ranks, that the online score is the mean of


class Window:
    """Sums over the updates of a stretch of time."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.samples = self.steps = 0
        self.sums: dict[str, float] = {}
        self.compute_seconds: Any = 0.0  # [ranks]
        self.updates, self.late = 0, np.zeros(1)  # late: updates that went ahead without each rank
        self.max_lag = 0.0

    @property
    def age(self) -> float:
        return time.perf_counter() - self.start

    def add(self, update: Update) -> None:
        self.samples += update.samples
        self.steps += update.steps
        for name, value in update.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.compute_seconds = self.compute_seconds + update.by_rank["compute_seconds"]
        self.updates += 1
        self.late = self.late + update.by_rank.get("late", 0.0)
        self.max_lag = max(self.max_lag, float(update.by_rank["max_lag"].max()))

    def shares(self) -> dict[str, float]:
        """Parts of the ranks' time, from 0 to 1."""
        seconds = {part: self.sums.get(f"{part}_seconds", 0.0) for part in PARTS}
        total = max(self.age * np.size(self.compute_seconds), 1e-9)
        return {f"{part}_share": spent / total for part, spent in seconds.items()}

    def figures(self) -> dict[str, float]:
        per_sample = ("policy_loss", "value_loss", "entropy", "gradient_norm", "lag")
        means = {name: self.sums.get(name, 0.0) / max(self.samples, 1) for name in per_sample}
        paces = {"steps_per_second": self.steps / self.age, "points_per_second": self.samples / self.age}
        counts = {"dropped": int(self.late.sum()), "rebuilt": int(self.sums.get("rebuilt", 0.0))}
        rest = paces | {"max_lag": self.max_lag} | counts
        return means | rest | self.shares() | {"slowest_rank": int(np.argmax(self.compute_seconds))}


class OnlineScore:
    """Mean raw score and length of the newest finished games."""

    def __init__(self) -> None:
        self._parts: deque[tuple[float, float, float]] = deque()  # games, score, steps per update

    def add(self, update: Update) -> None:
        if update.sums["episodes"]:
            self._parts.append((update.sums["episodes"], update.sums["score"], update.sums["episode_steps"]))
            while sum(games for games, _, _ in self._parts) - self._parts[0][0] >= ONLINE_GAMES:
                self._parts.popleft()

    def figures(self) -> dict[str, float | None]:
        games, score, steps = (
            (sum(column) for column in zip(*self._parts, strict=True)) if self._parts else (0.0, 0.0, 0.0)
        )
        return {"online_score": score / games if games else None, "online_game_steps": steps / games if games else None}


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
