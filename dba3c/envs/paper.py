"""The paper profile: gym's -v0 games of 2017, as the paper's program saw them."""

from __future__ import annotations

import ale_py
import cv2
import numpy as np
from gymnasium.spaces import Box, Discrete

from dba3c.config.schema import PAPER_STICKY, Env
from dba3c.envs.atari_names import resolve_game, rom_fingerprint
from dba3c.envs.deepmind import HISTORY, SIZE
from dba3c.types import Array, Step


class PaperEnv:
    """RGB 84×84 (bilinear), random skip 2-4, sticky 0.25, no max, no no-ops; an episode starts with black history."""

    frames_per_step = 3  # the mean of its random skip
    history = HISTORY
    resolve = staticmethod(resolve_game)
    fingerprint = staticmethod(rom_fingerprint)
    STEP_LIMIT = 10_000  # gym's limit for -v0 games; the paper's program counts it as terminal

    def __init__(self, config: Env, n_sim: int, _threads: int, max_frames: int | None) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner from every game
        self._emulators = [
            ale_py.AtariEnv(
                config.game,
                obs_type="rgb",
                frameskip=(2, 5),
                repeat_action_probability=PAPER_STICKY,
                full_action_space=config.full_action_space,
            )
            for _ in range(n_sim)
        ]
        self.n_sim = n_sim
        self.observation_space = Box(0, 255, (3 * HISTORY, SIZE, SIZE), np.uint8)
        self.action_space = Discrete(int(self._emulators[0].action_space.n), dtype=np.int32)  # type: ignore[attr-defined]
        self._life_loss_terminal = config.life_loss_terminal
        self._step_limit = self.STEP_LIMIT if max_frames is None else min(self.STEP_LIMIT, max_frames // 3)
        self._steps = np.zeros(n_sim, np.int64)
        self._lives = np.zeros(n_sim, np.int64)
        self._history = np.zeros((n_sim, *self.observation_space.shape), np.uint8)

    def reset(self, seeds: Array) -> Array:
        for simulator, seed in enumerate(seeds):
            self._restart(simulator, int(seed))
        return self._history.copy()

    def step(self, actions: Array) -> Step:
        rewards = np.zeros(self.n_sim, np.float64)
        ended = np.zeros(self.n_sim, bool)
        cut = np.zeros(self.n_sim, bool)
        lost_life = np.zeros(self.n_sim, bool)
        for simulator, emulator in enumerate(self._emulators):
            frame, rewards[simulator], over, _, info = emulator.step(int(actions[simulator]))
            self._steps[simulator] += 1
            cut[simulator] = not over and self._steps[simulator] >= self._step_limit
            ended[simulator] = over or cut[simulator]
            lost_life[simulator] = self._life_loss_terminal and info["lives"] < self._lives[simulator]
            self._lives[simulator] = info["lives"]
            if ended[simulator]:
                self._restart(simulator, None)
            else:
                self._append(simulator, frame)
        return Step(self._history.copy(), rewards, ended, ended | lost_life, cut=cut)

    def _restart(self, simulator: int, seed: int | None) -> None:
        frame, info = self._emulators[simulator].reset(seed=seed)
        self._steps[simulator], self._lives[simulator] = 0, info["lives"]
        self._history[simulator] = 0
        self._append(simulator, frame)

    def _append(self, simulator: int, frame: Array) -> None:
        history = self._history[simulator]  # [12, 84, 84], oldest frame first
        history[:-3] = history[3:]
        history[-3:] = cv2.resize(frame, (SIZE, SIZE)).transpose(2, 0, 1)

    def close(self) -> None:
        for emulator in self._emulators:
            emulator.close()
        self._emulators.clear()  # ale-py complains at exit about emulators that are still held
