"""The seams: what crosses from part to part. T = steps of a segment, B = segments, P = parameters, A = actions."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]
Json = dict[str, Any]  # what json.loads gives
SCALE_RATE = 0.005  # at which the scale of the advantages follows them, per update


class Episode(NamedTuple):
    """One finished game."""

    score: float  # sum of raw rewards
    steps: int


class Prediction(NamedTuple):
    """What the network says about observations, and the action drawn from it."""

    actions: Array  # [B] int32
    log_probabilities: Array  # [B] of the action taken
    values: Array  # [B]


class Batch(NamedTuple):
    """Segments of play, time-major. Termination is folded into the discounts."""

    observations: Array  # [T, B, channels, height, width] uint8
    actions: Array  # [T, B] int32
    log_probabilities: Array  # [T, B] when acting
    rewards: Array  # [T, B] clipped
    discounts: Array  # [T, B] gamma, or 0 where the episode ended after this step
    values: Array  # [T + 1, B] when acting; the last one is the bootstrap
    versions: Array  # [T, B] int64, number of the update whose weights acted
    episodes: list[Episode]  # games that ended while this batch was played

    @property
    def samples(self) -> int:
        return int(self.actions.size)


class Gradient(NamedTuple):
    """What one rank brings to an update."""

    mean: Array  # [P] gradient of the mean loss over this rank's samples
    samples: int
    steps: int  # of play that these samples are the first to learn from
    version: int  # number of the update whose weights it was computed with
    sums: dict[str, float]  # figures that are added up over the ranks; the same names on each
    own: dict[str, float]  # figures that are kept apart, rank by rank


class Update(NamedTuple):
    """What one update did, the same on every rank."""

    number: int
    samples: int  # data points of all ranks
    steps: int  # of play that were learned from for the first time
    applied: bool  # False: a gradient was not finite, the weights were left as they are
    stop: bool  # some rank was asked to stop
    sums: dict[str, float]
    by_rank: dict[str, Array]  # [ranks] each


@dataclass
class Progress:
    """How far the training is; saved with every checkpoint."""

    updates: int = 0
    steps: int = 0  # of play of all ranks
    seconds: float = 0.0  # wall clock, over all runs
    skipped: int = 0  # updates left out because a gradient was not finite
    bad_in_a_row: int = 0
    advantage_scale: float = 1.0  # what advantages are divided by, where an algorithm wants them of size 1
    evaluation_score: float | None = None  # newest
    best_score: float | None = None  # of all evaluations, probes included
    target_reached: bool = False  # by the newest evaluation

    def count(self, update: Update) -> None:
        self.updates = update.number
        self.steps += update.steps
        self.skipped += not update.applied
        self.bad_in_a_row = 0 if update.applied else self.bad_in_a_row + 1
        if update.applied and "advantage_square" in update.sums:
            # Follows the size of the advantages slowly, from the figures of the whole job: no rank has one of its own.
            self.advantage_scale *= 1 + SCALE_RATE * (update.sums["advantage_square"] / update.samples - 1)

    def evaluated(self, score: float, full: bool, target: float | None) -> None:
        """Only a full evaluation can reach the target."""
        self.evaluation_score = score
        self.best_score = score if self.best_score is None else max(score, self.best_score)
        self.target_reached = full and target is not None and score >= target


class Step(NamedTuple):
    """Answer of n simulators to n actions."""

    observations: Array  # [n, channels, height, width] uint8; where an episode ended, the first of the next
    rewards: Array  # [n] raw
    ended: Array  # [n] bool: the game is over
    terminal: Array  # [n] bool: nothing may be bootstrapped beyond this step
    lost: bool = False  # the simulators had to be built anew; these are the first pictures of other games


class VectorEnv(Protocol):
    """n simulators that step together and restart by themselves."""

    n_sim: int
    n_actions: int
    observation_shape: tuple[int, int, int]

    def reset(self, seeds: Array) -> Array: ...  # -> [n, channels, height, width]
    def step(self, actions: Array) -> Step: ...
    def close(self) -> None: ...


class Policy(Protocol):
    """Acts for any number of observations; `version` is the number of the update that made its weights."""

    version: int

    def act(self, observations: Array, noise: Array) -> Prediction: ...
    def greedy(self, observations: Array) -> Array: ...


class Player(Iterator["Batch | None"], Protocol):
    """Plays and yields batches, each valid until the next one is asked for; None if new weights came in between."""

    def restart(self, update: int) -> None: ...  # new games, drawn from the seed and this number
    def close(self) -> None: ...


class Optimizer(Protocol):
    """Turns the averaged gradient into new weights, in place; `progress` goes from 0 to 1."""

    def apply(self, gradient: Array, progress: float) -> None: ...
    def state(self) -> dict[str, Array]: ...
    def restore(self, state: dict[str, Array]) -> None: ...


class Transport(Protocol):
    """Moves data between the ranks."""

    rank: int
    size: int

    def sum(self, array: Array) -> None: ...  # in place, over all ranks
    def broadcast(self, value: Any, root: int = 0) -> Any: ...  # the value of that rank
    def gather(self, value: Any) -> list[Any]: ...  # all ranks' values, on every rank
    def twin(self) -> Any: ...  # another one of the same ranks, whose messages do not meet this one's


class SupportsBool(Protocol):
    def __bool__(self) -> bool: ...


class Communicator(Protocol):
    """Joins the ranks' gradients into updates and applies them."""

    def update(self, gradient: Gradient | None, stop: SupportsBool) -> list[Update]: ...  # those since the last call
    def close(self) -> None: ...


PARTS = ("env", "predict", "play", "gradient", "wait", "apply")  # of a rank's time; play: waiting for an async player


class Timings:
    """Seconds spent per named part, and simulators built anew, since the last `drain`."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.rebuilt = 0

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - start

    def drain(self) -> dict[str, float]:
        drained, self.seconds = self.seconds, defaultdict(float)
        rebuilt, self.rebuilt = self.rebuilt, 0
        return {f"{part}_seconds": drained[part] for part in PARTS} | {"rebuilt": float(rebuilt)}
