"""What updates add up to: over a stretch of time, over the newest episodes, over the whole run."""

from __future__ import annotations

import time
from collections import deque

import numpy as np

from dba3c.types import PARTS, Array, Json, Update

ONLINE_EPISODES = 100  # newest finished ones, of all ranks, that the online score is the mean of


class Window:
    """Sums over the updates of a stretch of time."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.updates = 0
        self.samples = 0
        self.steps = 0
        self.sums: dict[str, float] = {}
        self.compute_seconds: Array = np.zeros(1)  # [ranks]
        self.late: Array = np.zeros(1)  # [ranks] updates that went ahead without each
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

    def shares(self, rank_seconds: float) -> dict[str, float]:
        """Divide the time of all ranks among its parts, as shares from 0 to 1."""
        return {part: self.sums.get(f"{part}_seconds", 0.0) / max(rank_seconds, 1e-9) for part in PARTS}

    def figures(self) -> dict[str, float]:
        per_sample = ("policy_loss", "value_loss", "entropy", "gradient_norm", "lag")
        means = {name: self.sums.get(name, 0.0) / max(self.samples, 1) for name in per_sample}
        paces = {"steps_per_second": self.steps / self.age, "points_per_second": self.samples / self.age}
        counts = {"dropped": int(self.late.sum()), "rebuilt": int(self.sums.get("rebuilt", 0.0))}
        shares = self.shares(self.age * self.compute_seconds.size)
        rest = paces | {"max_lag": self.max_lag} | counts | {f"{part}_share": share for part, share in shares.items()}
        return means | rest | {"slowest_rank": int(np.argmax(self.compute_seconds))}


class OnlineScore:
    """Mean raw score and length of the newest finished episodes."""

    def __init__(self) -> None:
        self._updates: deque[tuple[float, float, float]] = deque()  # episodes, their scores and steps, by update

    def add(self, update: Update) -> None:
        if update.sums["episodes"]:
            self._updates.append((update.sums["episodes"], update.sums["score"], update.sums["episode_steps"]))
            while sum(episodes for episodes, _, _ in self._updates) - self._updates[0][0] >= ONLINE_EPISODES:
                self._updates.popleft()

    def figures(self) -> dict[str, float | None]:
        if not self._updates:
            return {"online_score": None, "online_game_steps": None}
        episodes, score, steps = (sum(column) for column in zip(*self._updates, strict=True))
        return {"online_score": score / episodes, "online_game_steps": steps / episodes}


class Pace:
    """How fast training proper is: from the end of the first update, which compiles, without evaluation and saving."""

    def __init__(self) -> None:
        self.startup_seconds: float | None = None
        self._all = Window()
        self._timed = Window()
        self._seconds = 0.0
        self._resumed = time.monotonic()

    def count(self, update: Update, started: float) -> None:
        now = time.monotonic()
        self._all.add(update)
        if self.startup_seconds is None:
            self.startup_seconds = now - started
        else:
            self._timed.add(update)
            self._seconds += now - self._resumed

    def figures(self, ranks: int) -> Json:
        shares = self._timed.shares(self._seconds * ranks)
        late = self._all.late
        return {
            "startup_seconds": self.startup_seconds,
            "steps_per_second": self._timed.steps / self._seconds if self._seconds else None,
            "shares": shares | {"other": 1 - sum(shares.values())},
            "rebuilt": int(self._all.sums.get("rebuilt", 0.0)),
            "dropped": int(late.sum()),
            "late_share_by_rank": (late / max(self._all.updates, 1)).tolist(),
        }

    def resume(self) -> None:
        """Note that training resumes after something else."""
        self._resumed = time.monotonic()
