"""Atari simulators: all pre-processing in one place, as profiles: deepmind, and paper (gym's -v0 games of 2017)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import ale_py
import cv2
import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from dba3c.config import ConfigError, suggest
from dba3c.sections import Env
from dba3c.types import Array, Step, VectorEnv

SIZE = 84  # height and width of an observation [DQN]
HISTORY = 4  # frames per observation [DQN]


def resolve_game(name: str, field: str) -> str:
    """ale-py's name of a game that may be written Breakout, SpaceInvaders, space-invaders, …"""
    games = {game.replace("_", ""): game for game in roms.get_all_rom_ids()}
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    if plain not in games:
        near = suggest(plain, games) or f"; {len(games)} games are known, among them breakout, pong, space_invaders"
        raise ConfigError(f"{field}={name!r}: no such game in ale-py{near}")
    return str(games[plain])


def rom_checksum(game: str) -> str:
    return hashlib.sha256(Path(roms.get_rom_path(game)).read_bytes()).hexdigest()[:16]


def make(config: Env, n_sim: int, threads: int, max_frames: int | None = None) -> VectorEnv:
    """n_sim simulators of the configured game; `max_frames` overrides the length limit."""
    return PROFILES[config.profile](config, n_sim, threads, max_frames)


class DeepMindEnv:
    """Gray 84×84, skip 4, max of the last two frames, stack of 4, up to 30 no-ops, no sticky actions."""

    def __init__(self, config: Env, n_sim: int, threads: int, max_frames: int | None) -> None:
        self._env = AtariVectorEnv(
            config.game,
            n_sim,
            num_threads=min(threads, n_sim),
            max_num_frames_per_episode=config.max_frames if max_frames is None else max_frames,
            autoreset_mode=AutoresetMode.SAME_STEP,
            img_height=SIZE,
            img_width=SIZE,
            stack_num=HISTORY,
            reward_clipping=False,  # scores are raw; the actor clips for learning
            use_fire_reset=config.fire_reset,
        )
        self.n_sim = n_sim
        self.n_actions = len(self._env.ale.get_action_set())
        self.observation_shape = (HISTORY, SIZE, SIZE)
        self._life_loss_terminal = config.life_loss_terminal
        self._lives = np.zeros(n_sim, np.int32)

    def reset(self, seeds: Array) -> Array:
        observations, info = self._env.reset(seed=seeds)
        self._lives = info["lives"]
        return np.asarray(observations)

    def step(self, actions: Array) -> Step:
        observations, rewards, terminated, truncated, info = self._env.step(actions)
        ended = terminated | truncated
        lost_life = (info["lives"] < self._lives) & self._life_loss_terminal
        self._lives = info["lives"]
        return Step(observations, rewards, ended, ended | lost_life)

    def close(self) -> None:
        self._env.close()
        del self._env  # ale-py complains at exit about emulators that are still held


class PaperEnv:
    """RGB 84×84 (bilinear), random skip 2-4, sticky 0.25, no max, no no-ops; a game starts with black history."""

    STEP_LIMIT = 10_000  # gym's limit for -v0 games; the paper's program counts it as terminal

    def __init__(self, config: Env, n_sim: int, _threads: int, max_frames: int | None) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner from every game
        self._games = [
            ale_py.AtariEnv(config.game, obs_type="rgb", frameskip=(2, 5), repeat_action_probability=0.25)
            for _ in range(n_sim)
        ]
        self.n_sim = n_sim
        self.n_actions = int(self._games[0].action_space.n)  # type: ignore[attr-defined]
        self.observation_shape = (3 * HISTORY, SIZE, SIZE)
        self._life_loss_terminal = config.life_loss_terminal
        self._step_limit = self.STEP_LIMIT if max_frames is None else min(self.STEP_LIMIT, max_frames // 3)
        self._steps = np.zeros(n_sim, np.int64)
        self._lives = np.zeros(n_sim, np.int64)
        self._history = np.zeros((n_sim, *self.observation_shape), np.uint8)

    def reset(self, seeds: Array) -> Array:
        for simulator, seed in enumerate(seeds):
            self._restart(simulator, int(seed))
        return self._history.copy()

    def step(self, actions: Array) -> Step:
        rewards = np.zeros(self.n_sim, np.float64)
        ended = np.zeros(self.n_sim, bool)
        lost_life = np.zeros(self.n_sim, bool)
        for simulator, game in enumerate(self._games):
            frame, rewards[simulator], over, _, info = game.step(int(actions[simulator]))
            self._steps[simulator] += 1
            ended[simulator] = over or self._steps[simulator] >= self._step_limit
            lost_life[simulator] = self._life_loss_terminal and info["lives"] < self._lives[simulator]
            self._lives[simulator] = info["lives"]
            if ended[simulator]:
                self._restart(simulator, None)
            else:
                self._append(simulator, frame)
        return Step(self._history.copy(), rewards, ended, ended | lost_life)

    def _restart(self, simulator: int, seed: int | None) -> None:
        frame, info = self._games[simulator].reset(seed=seed)
        self._steps[simulator], self._lives[simulator] = 0, info["lives"]
        self._history[simulator] = 0
        self._append(simulator, frame)

    def _append(self, simulator: int, frame: Array) -> None:
        history = self._history[simulator]  # [12, 84, 84], oldest frame first
        history[:-3] = history[3:]
        history[-3:] = cv2.resize(frame, (SIZE, SIZE)).transpose(2, 0, 1)

    def close(self) -> None:
        for game in self._games:
            game.close()
        self._games.clear()  # as above


PROFILES: dict[str, Callable[[Env, int, int, int | None], VectorEnv]] = {"deepmind": DeepMindEnv, "paper": PaperEnv}
