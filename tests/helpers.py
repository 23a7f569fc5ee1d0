"""Fakes that the tests share: a scripted game and policy, a loopback transport, and Catch, a small game to learn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.types import Array, Prediction, Step

T = TypeVar("T")

N_ACTIONS = 3
LENGTHS = (7, 4, 9)  # of the scripted games, in turn: their ends fall on every place of a segment
RAW_REWARDS = (5.0, 0.0, -3.0, 0.5)
PINNED = (  # what tests count on, whatever becomes of the preset
    "env.game=breakout", "env.profile=deepmind", "env.n_sim=16", "env.reward_clip=1", "actor.kind=lockstep",
    "actor.n_steps=5", "model.torso=nips", "model.hidden=128", "algorithm.gamma=0.99", "algorithm.entropy=0.01",
    "algorithm.clip=global", "optimizer.name=adam", "optimizer.learning_rate=0.001", "optimizer.beta1=0.8",
    "optimizer.beta2=0.75", "train.seed=0",
)  # fmt: skip


def settings(*overrides: str) -> Config:
    """The preset `paac` with overrides `section.key=value`."""
    return loading.load("paac", PINNED + overrides)


def within(seconds: float, work: Callable[[], T]) -> T:
    """The result of `work`; fails instead of hanging."""
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="within")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    assert outcome, f"nothing happened within {seconds} s"
    return outcome[0]


class Moment(NamedTuple):
    """Which step of which game of which simulator an observation shows."""

    simulator: int
    game: int
    step: int

    def __str__(self) -> str:
        return f"{self.simulator}:{self.game}:{self.step}"


def game_length(at: Moment) -> int:
    return LENGTHS[(at.simulator + at.game) % len(LENGTHS)]


def ends(at: Moment) -> bool:
    """The step taken at this moment ends the game."""
    return at.step + 1 == game_length(at)


def loses_life(at: Moment) -> bool:
    """The step taken at this moment is terminal for learning, but the game goes on."""
    return at.step == 2


def raw_reward(at: Moment) -> float:
    return RAW_REWARDS[(at.simulator + at.game + at.step) % len(RAW_REWARDS)]


def value(at: Moment) -> float:
    """What the scripted policy predicts: different at every moment, far from any reward, exact in float32."""
    return 16.0 + at.simulator + at.game / 16 + at.step / 256


def action(at: Moment) -> int:
    return (at.simulator + at.game + at.step) % N_ACTIONS


def following(at: Moment) -> Moment:
    return Moment(at.simulator, at.game + 1, 0) if ends(at) else Moment(at.simulator, at.game, at.step + 1)


def script(simulator: int) -> Iterator[Moment]:
    """Everything that a simulator shows, from its start."""
    at = Moment(simulator, 0, 0)
    while True:
        yield at
        at = following(at)


def scripted(simulator: int, steps: int) -> list[Moment]:
    return list(islice(script(simulator), steps))


def picture(at: Moment, seed: int) -> Array:
    numbers = [at.simulator, at.game >> 8, at.game & 255, at.step, *(seed >> shift & 255 for shift in (24, 16, 8, 0))]
    return np.array(numbers, np.uint8).reshape(1, 2, 4)


def moments(observations: Array) -> list[Moment]:
    """The moments that pictures show, in the order of memory."""
    return [Moment(int(p[0]), int(p[1]) << 8 | int(p[2]), int(p[3])) for p in observations.reshape(-1, 8)]


def seeds_shown(observations: Array) -> Array:
    """The emulator seeds that pictures show."""
    pixels = observations.reshape(-1, 8).astype(np.int64)
    return np.asarray(pixels[:, 4:] @ [1 << 24, 1 << 16, 1 << 8, 1])


class TapeEnv:
    """Simulators that follow the script, refuse other actions than the scripted ones, and note each call on a tape."""

    n_actions = N_ACTIONS
    observation_shape = (1, 2, 4)

    def __init__(
        self, n_sim: int, first: int = 0, tape: list[str] | None = None, delay: Callable[[], object] = lambda: None
    ) -> None:
        self.n_sim, self._first, self._delay = n_sim, first, delay
        self.tape: list[str] = [] if tape is None else tape
        self.steps = 0
        self.closed = False
        self._busy = threading.Lock()  # simulators bear one caller at a time

    def reset(self, seeds: Array) -> Array:
        assert self._busy.acquire(blocking=False), "reset while a step is running"
        self._seeds = [int(seed) for seed in seeds]
        self._at = [Moment(self._first + i, 0, 0) for i in range(self.n_sim)]
        self.tape.append("reset")
        self._busy.release()
        return self._show()

    def step(self, actions: Array) -> Step:
        assert self._busy.acquire(blocking=False), "two steps at once"
        self._delay()
        chosen = [int(choice) for choice in actions]
        assert chosen == [action(at) for at in self._at], "these actions were chosen for other observations"
        self.tape.append("step " + " ".join(map(str, chosen)))
        done, self._at = self._at, [following(at) for at in self._at]
        self.steps += 1
        rewards, ended = np.array([raw_reward(at) for at in done]), np.array([ends(at) for at in done])
        terminal = ended | np.array([loses_life(at) for at in done])
        self._busy.release()
        return Step(self._show(), rewards, ended, terminal)

    def _show(self) -> Array:
        return np.stack([picture(at, seed) for at, seed in zip(self._at, self._seeds, strict=True)])

    def close(self) -> None:
        self.closed = True


class ScriptedPolicy:
    """Values and actions are known functions of the observation; the noise is passed on as the log-probabilities."""

    def __init__(self, tape: list[str] | None = None) -> None:
        self.version = 0
        self.tape: list[str] = [] if tape is None else tape
        self.acted_with: dict[Moment, int] = {}  # the version that was current when each action was chosen

    def act(self, observations: Array, noise: Array) -> Prediction:
        seen = moments(observations)
        self.acted_with |= dict.fromkeys(seen, self.version)
        self.tape.append("predict " + " ".join(map(str, seen)))
        values = np.array([value(at) for at in seen], np.float32)
        return Prediction(self.greedy(observations), noise, values)

    def greedy(self, observations: Array) -> Array:
        return np.array([action(at) for at in moments(observations)], np.int32)


class Loopback:
    """A job of one rank."""

    rank, size = 0, 1

    def sum(self, array: Array) -> None: ...

    def broadcast(self, value: Any) -> Any:
        return value

    def gather(self, value: Any) -> list[Any]:
        return [value]


class Catch:
    """A ball falls through a grid; a paddle below goes left, stays or goes right. +1 for a catch, -1 for a miss."""

    n_actions = 3
    observation_shape = (1, 20, 20)
    CELLS, PIXELS = 5, 4

    def __init__(self, n_sim: int) -> None:
        self.n_sim = n_sim
        self._ball, self._paddle = np.zeros((n_sim, 2), np.int64), np.zeros(n_sim, np.int64)  # ball: row, column

    def reset(self, seeds: Array) -> Array:
        self._random = [np.random.default_rng(int(seed)) for seed in seeds]
        for simulator in range(self.n_sim):
            self._drop(simulator)
        return self._show()

    def _drop(self, simulator: int) -> None:
        self._ball[simulator] = 0, self._random[simulator].integers(self.CELLS)
        self._paddle[simulator] = self.CELLS // 2

    def step(self, actions: Array) -> Step:
        self._paddle = np.clip(self._paddle + actions - 1, 0, self.CELLS - 1)
        self._ball[:, 0] += 1
        ended = self._ball[:, 0] == self.CELLS - 1
        caught = np.where(self._ball[:, 1] == self._paddle, 1.0, -1.0)
        for simulator in np.flatnonzero(ended):
            self._drop(int(simulator))
        return Step(self._show(), np.where(ended, caught, 0.0), ended, ended)

    def _show(self) -> Array:
        cells = np.zeros((self.n_sim, 1, self.CELLS, self.CELLS), np.uint8)
        everyone = np.arange(self.n_sim)
        cells[everyone, 0, self._ball[:, 0], self._ball[:, 1]] = 255
        cells[everyone, 0, -1, self._paddle] = 255
        return cells.repeat(self.PIXELS, axis=2).repeat(self.PIXELS, axis=3)

    def close(self) -> None: ...
