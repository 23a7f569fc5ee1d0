"""GA3C's dynamic adjustment: how many agents, predictors and trainers there are follows the pace of the training."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from dba3c.config.schema import Config
from dba3c.types import Actor, Batch, Say

Crew = dict[str, int]  # agents, predictors, trainers: how many of each are at work
MOST_THREADS = 8  # that predict, or that compute gradients; GA3C has no limit [own]
FEWEST_BATCHES = 5  # of a window, however long they take
INTERRUPTED = 0.5  # a window with a gap of this share of it held something else, as an evaluation


def crew_of(config: Config) -> Crew:
    """Return the numbers that a training begins with."""
    groups = config.env.n_sim // config.actor.group_size
    agents = groups if config.actor.agents == "all" else config.actor.agents
    return {"agents": agents, "predictors": config.actor.predictors, "trainers": config.actor.trainers}


class Adjustment:
    """Moves one number by one at a time; a move stays if there were no fewer training steps per second with it.

    The first window is not counted: in it, functions are compiled.
    """

    def __init__(self, crew: Crew, most: Crew, seconds: float, seed: int) -> None:
        self._crew = crew
        self._most = most
        self._seconds = seconds
        self._random = np.random.default_rng(seed)
        self._start: float | None = None
        self._last = 0.0
        self._longest = 0.0  # seconds between two batches of this window
        self._batches = 0  # after the one that began the window
        self._warm = False
        self._pace: float | None = None  # with the numbers before the move
        self._move: tuple[str, int] | None = None

    def trained(self, now: float) -> str:
        """Count a training step; return a message about the move that was just judged, if one was."""
        if self._start is None:
            self._begin(now)
            return ""
        self._batches += 1
        self._longest = max(self._longest, now - self._last)
        self._last = now
        lasted = now - self._start
        if lasted < self._seconds or self._batches < FEWEST_BATCHES:
            return ""
        pace, counts = self._batches / lasted, self._warm and self._longest < INTERRUPTED * lasted
        self._begin(now)
        self._warm = True
        return self._judge(pace) if counts else ""

    def _begin(self, now: float) -> None:
        """Begin a window with a batch that is not counted."""
        self._start = self._last = now
        self._longest = 0.0
        self._batches = 0

    def _judge(self, pace: float) -> str:
        """Keep or undo the move before, and make another."""
        told = ""
        if self._pace is None or self._move is None:
            self._pace = pace
        else:
            name, change = self._move
            kept = pace >= self._pace
            tried = self._crew[name]
            told = f"{name} {tried - change} → {tried}: {self._pace:.2f} → {pace:.2f} batches/s, "
            told += "kept" if kept else "undone"
            if kept:
                self._pace = pace
            else:
                self._crew[name] -= change
        self._move = self._draw()
        if self._move is not None:
            self._crew[self._move[0]] += self._move[1]
        return told

    def settle(self) -> None:
        """Undo the move that is being tried."""
        if self._move is not None:
            self._crew[self._move[0]] -= self._move[1]
            self._move = None

    def _draw(self) -> tuple[str, int] | None:
        """Draw one of the moves that are possible."""
        moves = [
            (name, change)
            for name, count in self._crew.items()
            for change in (-1, 1)
            if 1 <= count + change <= self._most[name]
        ]
        return moves[self._random.integers(len(moves))] if moves else None


class SelfTuning:
    """Plays as the actor whose crew it adjusts, by the pace at which batches are taken."""

    def __init__(self, config: Config, actor: Actor, crew: Crew, say: Say) -> None:
        self.crew = crew
        self._actor = actor
        self._say = say
        most = {
            "agents": config.env.n_sim // config.actor.group_size,
            "predictors": max(MOST_THREADS, config.actor.predictors),
            "trainers": max(MOST_THREADS, config.actor.trainers),
        }
        self._adjustment = Adjustment(crew, most, config.actor.tuning_seconds, config.train.seed)

    def restart(self, update: int) -> None:
        self._actor.restart(update)

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        batch = next(self._actor)
        if told := self._adjustment.trained(time.perf_counter()):
            self._say(f"self-tuning: {told}")
        return batch

    def close(self) -> None:
        self._actor.close()
