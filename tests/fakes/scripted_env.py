"""Games and a policy that follow a script: every observation tells which moment of which game it shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from dba3c.types import Array, Prediction, Step

N_ACTIONS = 3
LENGTHS = (7, 4, 9)  # of the scripted games, in turn: their ends fall on every place of a segment
RAW_REWARDS = (5.0, 0.0, -3.0, 0.5)


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

    observation_space = Box(0, 255, (1, 2, 4), np.uint8)
    action_space = Discrete(N_ACTIONS, dtype=np.int32)

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

    memory_size = 0
    noise_size = 1
    reward_scale = 1.0

    def __init__(self, tape: list[str] | None = None) -> None:
        self.version = 0
        self.tape: list[str] = [] if tape is None else tape
        self.acted_with: dict[Moment, int] = {}  # the version that was current when each action was chosen

    def act(self, observations: Array, noise: Array, _simulators: Array, memory: Array) -> Prediction:
        seen = moments(observations)
        self.acted_with |= dict.fromkeys(seen, self.version)
        self.tape.append("predict " + " ".join(map(str, seen)))
        values = np.array([value(at) for at in seen], np.float32)
        return Prediction(self.greedy(observations, memory)[0], noise[:, 0], values, memory)

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        return np.array([action(at) for at in moments(observations)], np.int32), memory


class CountingPolicy(ScriptedPolicy):
    """Remembers how many steps of its episode a simulator has made; refuses to act if it remembers anything else."""

    memory_size = 1

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        return super().act(observations, noise, simulators, memory)._replace(memory=self._counted(observations, memory))

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        return super().greedy(observations, memory)[0], self._counted(observations, memory)

    def _counted(self, observations: Array, memory: Array) -> Array:
        assert memory[:, 0].tolist() == [at.step for at in moments(observations)]
        return memory + 1
