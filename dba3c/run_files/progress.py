"""What a run has done so far; saved with every checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dba3c.types import Clock, Json, Update


@dataclass
class Progress:
    """Counters and scores of a run, over all jobs that have worked on it."""

    updates: int = 0
    steps: int = 0  # of play of all ranks
    seconds: float = 0.0  # wall clock, over all runs
    skipped: int = 0  # updates without effect, because a gradient was not finite
    empty: int = 0  # updates without effect, because there was nothing to learn from
    bad_in_a_row: int = 0  # skipped updates since the last one that was not
    evaluation_score: float | None = None  # newest
    evaluation_games: int = 0  # episodes that it is the mean of
    best_score: float | None = None  # of all evaluations, probes included
    target_reached: bool = False  # by the newest evaluation

    def count(self, update: Update) -> None:
        self.updates = update.number
        self.steps += update.steps
        self.skipped += update.skipped
        self.empty += not update.skipped and not update.applied
        self.bad_in_a_row = self.bad_in_a_row + 1 if update.skipped else 0

    def evaluated(self, score: float, games: int, full: bool, target: float | None) -> None:
        """Take note of an evaluation; only a full one can reach the target."""
        self.evaluation_score = score
        self.evaluation_games = games
        self.best_score = score if self.best_score is None else max(score, self.best_score)
        self.target_reached = full and target is not None and score >= target

    def clock(self, total_steps: int) -> Clock:
        return Clock(self.updates, self.steps, total_steps)


def read_progress(saved: Json) -> Progress:
    """Read a saved progress; fields that this version no longer has are dropped."""
    known = {field.name for field in fields(Progress)}
    return Progress(**{name: value for name, value in saved.items() if name in known})
