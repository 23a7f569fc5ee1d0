"""A game played again from its seed and its actions, to see every frame of the emulator in colour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from dba3c.config.schema import Env
from dba3c.types import Array

NO_LIMIT = 10**9  # frames; who replays knows when the game ended


class Frame(NamedTuple):
    picture: Array  # [height, width, 3] uint8
    reward: float


def replay(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """The frames of each action, in a game that goes as that of envs.make with this seed; fewer if the game ends."""
    return (paper if config.profile == "paper" else deepmind)(config, seed, actions)


def deepmind(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """The simulator of the deepmind profile with a skip of 1: the same seed draws the same no-ops."""
    height, width = screen(config.game)
    env = AtariVectorEnv(
        config.game,
        1,
        num_threads=1,
        max_num_frames_per_episode=NO_LIMIT,
        autoreset_mode=AutoresetMode.SAME_STEP,
        img_height=height,
        img_width=width,
        grayscale=False,
        stack_num=1,
        frameskip=1,
        maxpool=False,
        reward_clipping=False,
        use_fire_reset=config.fire_reset,
    )
    env.reset(seed=np.array([seed], np.int32))
    for action in actions:
        frames: list[Frame] = []
        over = False
        while len(frames) < 4 and not over:
            pictures, rewards, terminated, _, info = env.step(np.array([action], np.int32))
            over = bool(terminated[0])
            last = info["final_obs"] if over else pictures  # [1, 1, height, width, 3]
            frames.append(Frame(np.array(last[0][0]), float(rewards[0])))
        yield frames
    env.close()


def paper(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """The emulator of the paper profile, with the random skips drawn here: frames that it would skip are seen."""
    game = ale_py.AtariEnv(config.game, obs_type="rgb", frameskip=1, repeat_action_probability=0.25)
    game.reset(seed=seed)
    for action in actions:
        frames, over = [], False
        for _ in range(game.np_random.integers(2, 5)):
            if not over:
                picture, reward, over, _, _ = game.step(action)
                frames.append(Frame(np.array(picture), float(reward)))
        yield frames
    game.close()


def screen(game: str) -> tuple[int, int]:
    """Height and width of the emulator's picture."""
    emulator = ale_py.AtariEnv(game, obs_type="rgb")
    height, width, _ = emulator.observation_space.shape  # type: ignore[misc]
    emulator.close()
    return int(height), int(width)
