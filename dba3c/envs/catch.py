"""The catch profile: a small game without a ROM, learned in seconds."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Discrete

from dba3c.config.messages import ConfigError, shown
from dba3c.config.schema import Env
from dba3c.types import Array, Step

GAME = "catch"
PIXELS = 4  # of a cell in an observation: five cells are what the convolutions of torso nips need


class CatchEnv:
    """A ball falls through a grid; a paddle below goes left, stays or goes right. +1 for a catch, -1 for a miss.

    With env.blind the ball is shown only while it is in the first row, so the agent must remember its column.
    """

    frames_per_step = 1

    def __init__(self, config: Env, n_sim: int, _threads: int, _max_frames: int | None) -> None:
        self.width = config.width
        self.n_sim = n_sim
        self.observation_space = Box(0, 255, (1, PIXELS * self.width, PIXELS * self.width), np.uint8)
        self.action_space = Discrete(3, dtype=np.int32)
        self._shown_rows = 1 if config.blind else self.width
        self._balls = np.zeros((n_sim, 2), np.int64)  # row, column
        self._paddles = np.zeros(n_sim, np.int64)

    @staticmethod
    def resolve(name: str, field: str) -> str:
        if name.lower() != GAME:
            raise ConfigError(f"{field}={shown(name)}: env.profile=catch has one game; write {GAME}")
        return GAME

    @staticmethod
    def fingerprint(_config: Env) -> dict[str, str]:
        return {}  # the game is part of dba3c, whose version is compared anyway

    def reset(self, seeds: Array) -> Array:
        self._random = [np.random.default_rng(int(seed)) for seed in seeds]
        for simulator in range(self.n_sim):
            self._drop(simulator)
        return self._show()

    def _drop(self, simulator: int) -> None:
        self._balls[simulator] = 0, self._random[simulator].integers(self.width)
        self._paddles[simulator] = self.width // 2

    def step(self, actions: Array) -> Step:
        self._balls, self._paddles = self.moved(actions)
        ended = self._balls[:, 0] == self.width - 1
        caught = np.where(self._balls[:, 1] == self._paddles, 1.0, -1.0)
        for simulator in np.flatnonzero(ended):
            self._drop(int(simulator))
        return Step(self._show(), np.where(ended, caught, 0.0), ended, ended)

    def moved(self, actions: Array) -> tuple[Array, Array]:
        """Say where balls and paddles are after these actions, before a ball that has come down is dropped again."""
        return self._balls + np.array([1, 0]), np.clip(self._paddles + actions - 1, 0, self.width - 1)

    def _show(self) -> Array:
        cells = np.zeros((self.n_sim, 1, self.width, self.width), np.uint8)
        everyone = np.arange(self.n_sim)
        rows, columns = self._balls.T
        cells[everyone, 0, rows, columns] = np.where(rows < self._shown_rows, 255, 0)
        cells[everyone, 0, -1, self._paddles] = 255
        return cells.repeat(PIXELS, axis=2).repeat(PIXELS, axis=3)

    def close(self) -> None: ...
