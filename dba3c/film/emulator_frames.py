"""Every frame of the emulator, in colour, of an episode that is repeated from its seed and its actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import ale_py
import gymnasium
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from dba3c.config.messages import ConfigError
from dba3c.config.schema import PAPER_STICKY, Env
from dba3c.envs.catch import CatchEnv
from dba3c.envs.gymnasium_env import made, preparation
from dba3c.envs.gymnasium_ids import spec_of
from dba3c.film.panel import FRAMES_PER_SECOND
from dba3c.types import Array

NO_LIMIT = 10**9  # frames of an episode: the list of actions already ends where the episode ended
DEEPMIND_SKIP = 4  # frames per step of envs/deepmind.py
PAPER_SKIP = (2, 5)  # least frames per step, and one more than the most, of envs/paper.py
CATCH_PIXELS = 210  # at least, of the picture's height and width: that of an Atari game
CATCH_FRAMES = 12  # of each step: five steps a second
GYMNASIUM_FPS = 30  # of an environment that does not say
BALL = (236, 200, 96)
PADDLE = (92, 186, 92)


class Frame(NamedTuple):
    """One picture of the emulator and the raw reward that came with it."""

    picture: Array  # [height, width, 3] uint8
    reward: float


def frames_of(config: Env, seed: int, actions: list[Array]) -> Iterator[list[Frame]]:
    """Repeat the episode of envs.make with this seed, and yield the frames of each action."""
    if config.profile == "gymnasium":
        return gymnasium_frames(config, seed, actions)
    repeat = {"paper": paper_frames, "catch": catch_frames}.get(config.profile, deepmind_frames)
    return repeat(config, seed, [int(action) for action in actions])


def gymnasium_frames(config: Env, seed: int, actions: list[Array]) -> Iterator[list[Frame]]:
    """Render an episode of the gymnasium profile, each picture for as long as the environment says."""
    env = made(spec_of(config.game, "env.game"), NO_LIMIT, "rgb_array")
    prepare = preparation(env.action_space)
    copies = max(1, round(FRAMES_PER_SECOND / env.metadata.get("render_fps", GYMNASIUM_FPS)))
    env.reset(seed=seed)
    for action in actions:
        reward = float(env.step(prepare(np.asarray(action)[np.newaxis])[0])[1])
        picture = rendered(env, config.game)
        yield [Frame(picture, reward), *[Frame(picture, 0.0)] * (copies - 1)]
    env.close()


def rendered(env: gymnasium.Env[Any, Any], game: str) -> Array:
    """Take a picture of an environment; ConfigError if it cannot be taken here."""
    try:
        picture = np.asarray(env.render())
    except Exception as error:  # there is no end to what OpenGL, pygame and their absence raise
        raise ConfigError(
            f"env.game={game}: cannot be rendered here, {type(error).__name__}: {error}; a film needs pygame"
            " (`pip install 'gymnasium[classic-control]'`) or, for MuJoCo, OpenGL (set MUJOCO_GL=egl or osmesa)"
        ) from None
    if picture.ndim != 3 or picture.dtype != np.uint8:
        raise ConfigError(f"env.game={game}: draws no pictures (render mode rgb_array); it cannot be filmed")
    return picture


def deepmind_frames(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """Repeat an episode of the deepmind profile with a skip of 1: the same seed draws the same no-ops."""
    height, width = screen_size(config.game)
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
        noop_max=config.noop_max,
        repeat_action_probability=config.sticky,
        full_action_space=config.full_action_space,
    )
    env.reset(seed=np.array([seed], np.int32))
    for action in actions:
        frames: list[Frame] = []
        over = False
        while len(frames) < DEEPMIND_SKIP and not over:
            pictures, rewards, terminated, _, info = env.step(np.array([action], np.int32))
            over = bool(terminated[0])
            last = info["final_obs"] if over else pictures  # [1, 1, height, width, 3]
            frames.append(Frame(np.array(last[0][0]), float(rewards[0])))
        yield frames
    env.close()


def paper_frames(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """Repeat an episode of the paper profile with a skip of 1, drawing its random skips from the same generator."""
    emulator = ale_py.AtariEnv(
        config.game,
        obs_type="rgb",
        frameskip=1,
        repeat_action_probability=PAPER_STICKY,
        full_action_space=config.full_action_space,
    )
    emulator.reset(seed=seed)
    for action in actions:
        frames: list[Frame] = []
        over = False
        for _ in range(emulator.np_random.integers(*PAPER_SKIP)):
            if not over:
                picture, reward, over, _, _ = emulator.step(action)
                frames.append(Frame(np.array(picture), float(reward)))
        yield frames
    emulator.close()


def catch_frames(config: Env, seed: int, actions: list[int]) -> Iterator[list[Frame]]:
    """Draw an episode of Catch, also the ball that env.blind hides from the agent."""
    env = CatchEnv(config, 1, 1, None)
    env.reset(np.array([seed]))
    pixels = -(-CATCH_PIXELS // env.width)
    for action in actions:
        (ball,), (paddle,) = env.moved(np.array([action]))
        cells = np.zeros((env.width, env.width, 3), np.uint8)
        cells[-1, paddle] = PADDLE
        cells[tuple(ball)] = BALL
        picture = cells.repeat(pixels, axis=0).repeat(pixels, axis=1)
        reward = float(env.step(np.array([action])).rewards[0])
        yield [Frame(picture, reward), *[Frame(picture, 0.0)] * (CATCH_FRAMES - 1)]


def screen_size(game: str) -> tuple[int, int]:
    """Return the height and the width of the emulator's picture."""
    emulator = ale_py.AtariEnv(game, obs_type="rgb")
    height, width, _ = emulator.observation_space.shape  # type: ignore[misc]
    emulator.close()
    return int(height), int(width)
