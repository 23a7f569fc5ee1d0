"""Catch, a small game to learn."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Discrete

from dba3c.types import Array, Step


class Catch:
    """A ball falls through a grid; a paddle below goes left, stays or goes right. +1 for a catch, -1 for a miss."""

    observation_space = Box(0, 255, (1, 20, 20), np.uint8)
    action_space = Discrete(3, dtype=np.int32)
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
