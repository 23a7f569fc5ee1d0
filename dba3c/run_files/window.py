"""What updates add up to: over a stretch of time, over whole segments, over the newest episodes, over the run."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

import numpy as np

from dba3c.timings import PARTS
from dba3c.types import Array, Json, Update

ONLINE_EPISODES = 100  # newest finished ones, of all ranks, that the online score is the mean of
ETA_SECONDS = 30.0  # that a job must have trained before it says how long the rest takes
PLAY = ("env_seconds", "predict_seconds", "play_seconds")
COUNTED = {  # sums that are no mean over samples
    "episodes", "score", "episode_steps", "rebuilt", "outliers", *(f"{part}_seconds" for part in PARTS),
}  # fmt: skip


CREW = ("agents", "predictors", "trainers")  # of an async actor whose threads compute several gradients


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
        self.crew: dict[str, float] = {}  # at the end of it
        self.gradients: Array = np.zeros(1)  # [ranks] that were applied
        self.staleness: Array = np.zeros(1)  # [ranks] their sum

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
        if "staleness" in update.by_rank:
            self.gradients = self.gradients + (update.by_rank["compute_seconds"] > 0)
            self.staleness = self.staleness + update.by_rank["staleness"]
        self.crew = {name: float(update.by_rank[name].max()) for name in CREW if name in update.by_rank}

    def shares(self, rank_seconds: float) -> dict[str, float]:
        """Divide the time of all ranks among its parts, as shares from 0 to 1."""
        spent = {part: self.sums.get(f"{part}_seconds", 0.0) for part in PARTS}
        # An update reports a segment that may have begun earlier, and the waiting and applying before it.
        whole = max(rank_seconds, sum(spent.values()), 1e-9)
        return {part: seconds / whole for part, seconds in spent.items()}

    def figures(self) -> dict[str, float]:
        """Return every figure of the loss as a mean over samples, the share of each part of the time, and counts."""
        paces = {"points_per_second": self.samples / self.age}
        counts = {"dropped": int(self.late.sum()), "rebuilt": int(self.sums.get("rebuilt", 0.0))}
        counts |= {"outliers": int(self.sums["outliers"])} if "outliers" in self.sums else {}
        shares = self.shares(self.age * self.compute_seconds.size)
        rest = paces | {"max_lag": self.max_lag} | counts | {f"{part}_share": share for part, share in shares.items()}
        return (
            means(self.sums, self.samples) | rest | self.crew | {"slowest_rank": int(np.argmax(self.compute_seconds))}
        )


def means(sums: dict[str, float], samples: int) -> dict[str, float]:
    """Return what the loss put out, as means over samples."""
    return {name: total / max(samples, 1) for name, total in sums.items() if name not in COUNTED}


class Mark(NamedTuple):
    """A moment, and the steps until then."""

    seconds: float
    steps: int


class SegmentPace:
    """Steps per second over whole segments: an algorithm may play for a while and then learn from that for another.

    It counts from one update that brought new play to a later one. Both stand at the same place of their segments.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._first: Mark | None = None
        self._last: Mark | None = None
        self._before: float | None = None

    def add(self, update: Update, seconds: float) -> None:
        self._steps += update.steps
        if any(update.sums.get(name, update.steps) for name in PLAY):
            self._last = Mark(seconds, self._steps)
            self._first = self._first or self._last

    @property
    def value(self) -> float | None:
        """Of this stretch or, until that has a whole segment, of the one before; None if there was none."""
        if self._first is None or self._last is None or self._last.seconds <= self._first.seconds:
            return self._before
        return (self._last.steps - self._first.steps) / (self._last.seconds - self._first.seconds)

    def renew(self) -> None:
        """Begin a new stretch where the newest segment begins."""
        self._before, self._first = self.value, self._last

    def interrupt(self) -> None:
        """Leave out what happens until the next segment, as an evaluation."""
        self._before, self._first = self.value, None


class TimeLeft:
    """How long the rest takes at the mean pace of this job, with all that it did besides training."""

    def __init__(self, total_steps: int) -> None:
        self._total = total_steps
        self._first: Mark | None = None

    def seconds(self, steps: int, now: float) -> float | None:
        """Return the seconds that remain after so many steps; None as long as that is a guess."""
        if self._first is None:
            self._first = Mark(now, steps)  # the end of the first update, which compiles
        done, lasted = steps - self._first.steps, now - self._first.seconds
        return max(0, self._total - steps) * lasted / done if done > 0 and lasted >= ETA_SECONDS else None


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
        self._timed_seconds = 0.0
        self._segments = SegmentPace()
        self._seconds = 0.0
        self._resumed = time.monotonic()

    def count(self, update: Update, started: float) -> None:
        now = time.monotonic()
        self._all.add(update)
        if self.startup_seconds is None:
            self.startup_seconds = now - started
        else:
            self._seconds += now - self._resumed
        self._segments.add(update, self._seconds)
        if self._all.updates > 2:  # the second one's figures hold the time in which the first was applied
            self._timed.add(update)
            self._timed_seconds += now - self._resumed

    def figures(self, ranks: int) -> Json:
        """Return what summary.json says about time; no pace for a run of less than two segments."""
        shares = self._timed.shares(self._timed_seconds * ranks)
        late = self._all.late
        return {
            "startup_seconds": self.startup_seconds,
            "steps_per_second": self._segments.value,
            "shares": shares | {"other": max(0.0, 1 - sum(shares.values()))},
            "rebuilt": int(self._all.sums.get("rebuilt", 0.0)),
            "dropped": int(late.sum()),
            "late_share_by_rank": (late / max(self._all.updates, 1)).tolist(),
            "staleness_by_rank": (self._all.staleness / np.maximum(self._all.gradients, 1)).tolist(),
        }

    def resume(self) -> None:
        """Note that training resumes after something else."""
        self._resumed = time.monotonic()
