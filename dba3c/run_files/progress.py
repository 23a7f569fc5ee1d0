"""What a run has done so far; saved with every checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dba3c.config.messages import shown
from dba3c.types import Clock, Update

Counter = Annotated[int, Field(ge=0, le=10**13, strict=True)]
Score = Annotated[float, Field(ge=-1e15, le=1e15, strict=True)]


class NewerVersionError(ValueError):
    """Something that only a newer version of dba3c writes."""


@dataclass
class Progress:
    """Counters and scores of a run, over all jobs that have worked on it."""

    __pydantic_config__ = ConfigDict(allow_inf_nan=False)  # for saved values

    updates: Counter = 0
    steps: Counter = 0  # of play of all ranks
    seconds: Annotated[float, Field(ge=0, le=1e12, strict=True)] = 0.0  # wall clock, over all runs
    skipped: Counter = 0  # updates without effect, because a gradient was not finite
    empty: Counter = 0  # updates without effect, because there was nothing to learn from
    bad_in_a_row: Counter = 0  # skipped updates since the last one that was not
    evaluation_score: Score | None = None  # newest
    evaluation_games: Counter = 0  # episodes that it is the mean of
    evaluation_scores: Annotated[list[Score], Field(max_length=10**6)] = field(default_factory=list)  # theirs
    evaluation_cut: Counter = 0  # of these, episodes that had not come to their end
    best_score: Score | None = None  # of all evaluations, probes included
    evaluated_after: Counter | None = None  # the update of the newest evaluation
    reached_in_a_row: Counter = 0  # newest evaluations, of all episodes, that reached the target
    target_reached: Annotated[bool, Field(strict=True)] = False  # by as many of them as evaluate.in_a_row asks for

    def count(self, update: Update) -> None:
        self.updates = update.number
        self.steps += update.steps
        self.skipped += update.skipped
        self.empty += not update.skipped and not update.applied
        self.bad_in_a_row = self.bad_in_a_row + 1 if update.skipped else 0

    def evaluated(
        self, score: float, games: int, full: bool, target: float | None, cut: int = 0, in_a_row: int = 1
    ) -> None:
        """Take note of an evaluation; only full ones can reach the target, `in_a_row` of them."""
        self.evaluation_score = score
        self.evaluation_games = games
        self.evaluation_cut = cut
        self.best_score = score if self.best_score is None else max(score, self.best_score)
        if self.evaluated_after == self.updates:  # the same weights do not count twice
            self.reached_in_a_row = max(0, self.reached_in_a_row - 1)
        self.evaluated_after = self.updates
        self.reached_in_a_row = self.reached_in_a_row + 1 if full else 0
        self.judge(target, in_a_row)

    def judge(self, target: float | None, in_a_row: int) -> None:
        """Say whether the newest evaluation, and those before it, have reached a target that may have changed."""
        if target is None or self.evaluation_score is None or self.evaluation_score < target:
            self.reached_in_a_row = 0
        self.target_reached = self.reached_in_a_row >= in_a_row

    def clock(self, total_steps: int) -> Clock:
        return Clock(self.updates, self.steps, total_steps)


SAVED = TypeAdapter(Progress)
Callback = Callable[[Progress, dict[str, float]], object]  # progress and figures after an update; False: stop


def read_progress(saved: object) -> Progress:
    """Check and read a saved progress; ValueError if it is damaged, NewerVersionError if it has unknown keys."""
    if not isinstance(saved, dict) or "updates" not in saved:
        raise ValueError(f"the progress is damaged: {shown(saved)}")
    unknown = sorted(saved.keys() - {field.name for field in fields(Progress)})
    if unknown:
        raise NewerVersionError(f"progress.{unknown[0]}")
    before = {"reached_in_a_row": int(saved.get("target_reached") is True)}  # version 0.1 did not count them
    try:
        return SAVED.validate_python(before | saved)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ValueError(
            f"the progress is damaged: {wrong['loc'][0]}={shown(wrong['input'])}: {wrong['msg'].lower()}"
        ) from None
