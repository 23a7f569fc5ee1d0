"""The deepmind profile: DQN's pre-processing, by ale-py's own vector environment."""

from __future__ import annotations

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode

from dba3c.config.schema import Env
from dba3c.envs.atari_names import resolve_game, rom_fingerprint
from dba3c.types import Array, Step

SIZE = 84  # height and width of an observation [DQN]
HISTORY = 4  # frames per observation [DQN]


class DeepMindEnv:
    """Gray 84×84, skip 4, max of the last two frames, stack of 4, up to 30 no-ops; sticky actions if asked for."""

    frames_per_step = 4
    history = HISTORY
    resolve = staticmethod(resolve_game)
    fingerprint = staticmethod(rom_fingerprint)

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
            noop_max=config.noop_max,
            repeat_action_probability=config.sticky,
            full_action_space=config.full_action_space,
        )
        self.n_sim = n_sim
        self.observation_space = Box(0, 255, (HISTORY, SIZE, SIZE), np.uint8)
        self.action_space = Discrete(len(self._env.ale.get_action_set()), dtype=np.int32)
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
        return Step(observations, rewards, ended, ended | lost_life, cut=truncated & ~terminated)

    def close(self) -> None:
        self._env.close()
        del self._env  # ale-py complains at exit about emulators that are still held
