"""The gymnasium profile: any registered environment, as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.envs.gymnasium_ids import package_versions, resolve_id, spec_of
from dba3c.types import Array, Step

Show = Callable[[Any], Array]  # an observation of the environment → one of ours


class GymnasiumEnv:
    """Environments in a loop, which gymnasium's own vector env does not beat; pictures become channel-first.

    Everything else becomes a vector of float32. Continuous actions are clipped to their bounds on the way in.
    """

    frames_per_step = 1
    resolve = staticmethod(resolve_id)
    fingerprint = staticmethod(package_versions)

    def __init__(self, config: Env, n_sim: int, _threads: int, max_frames: int | None) -> None:
        spec = spec_of(config.game, "env.game")
        most_steps = config.max_frames if max_frames is None else max_frames
        own_limit = spec.max_episode_steps or math.inf
        self._cuts = most_steps < own_limit  # the limit is ours, and no part of the task
        self._envs = [made(spec, int(min(most_steps, own_limit))) for _ in range(n_sim)]
        self.n_sim = n_sim
        self.observation_space, self._show = shown_as(config.game, self._envs[0].observation_space)
        self.action_space = taken_as(config.game, self._envs[0].action_space)
        self._prepare = preparation(self._envs[0].action_space)

    def reset(self, seeds: Array) -> Array:
        first = [env.reset(seed=int(seed))[0] for env, seed in zip(self._envs, seeds, strict=True)]
        return np.stack([self._show(observation) for observation in first])

    def step(self, actions: Array) -> Step:
        observations = np.empty((self.n_sim, *self.observation_space.shape), self.observation_space.dtype)
        rewards = np.zeros(self.n_sim)
        ended = np.zeros(self.n_sim, bool)
        terminal = np.zeros(self.n_sim, bool)
        final = []
        for simulator, (env, action) in enumerate(zip(self._envs, self._prepare(actions), strict=True)):
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards[simulator] = reward
            terminal[simulator] = terminated
            if terminated or truncated:
                ended[simulator] = True
                final += [] if terminated else [self._show(observation)]
                observation, _ = env.reset()
            observations[simulator] = self._show(observation)
        last = np.stack(final) if final else observations[:0]
        return Step(observations, rewards, ended, terminal, last, cut=ended & ~terminal & self._cuts)

    def close(self) -> None:
        for env in self._envs:
            env.close()


def made(spec: EnvSpec, most_steps: int, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Make one environment; ConfigError if a package that it needs is missing."""
    try:
        return gymnasium.make(spec, max_episode_steps=most_steps, render_mode=render_mode, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError(
            f"env.game={spec.id}: {error}; `pip install 'dba3c[mujoco]'` and `'dba3c[box2d]'` install what gymnasium's"
            " environments need"
        ) from None


def shown_as(game: str, space: spaces.Space[Any]) -> tuple[spaces.Box, Show]:
    """Say how an observation is shown to the agent; ConfigError if it cannot be."""
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3):
        shape = space.shape if len(space.shape) == 3 else (*space.shape, 1)
        if shape[0] < shape[2]:  # channels come first already
            return spaces.Box(0, 255, shape, np.uint8), np.asarray
        height, width, channels = shape
        return (
            spaces.Box(0, 255, (channels, height, width), np.uint8),
            lambda picture: np.reshape(picture, shape).transpose(2, 0, 1),
        )
    if not space.is_np_flattenable:
        raise ConfigError(
            f"env.game={game}: its observations are {space}; dba3c needs pictures, vectors or what can be flattened to"
            " them: choose another environment, or wrap this one"
        )
    numbers = spaces.flatdim(space)
    return (
        spaces.Box(-np.inf, np.inf, (numbers,), np.float32),
        lambda seen: np.asarray(spaces.flatten(space, seen), np.float32),
    )


def taken_as(game: str, space: spaces.Space[Any]) -> spaces.Box | spaces.Discrete:
    """Say what the agent's actions are; ConfigError if it has none of this kind."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n), dtype=np.int32)  # type: ignore[arg-type]
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and spaces.flatdim(space):
        return spaces.Box(-np.inf, np.inf, (spaces.flatdim(space),), np.float32)
    raise ConfigError(
        f"env.game={game}: its actions are {space}; dba3c has policies for Discrete actions and for a Box of real"
        " numbers: choose another environment, or wrap this one"
    )


def preparation(space: spaces.Space[Any]) -> Callable[[Array], list[Any]]:
    """Say how the agent's actions become those of the environment."""
    if isinstance(space, spaces.Discrete):
        return lambda actions: (actions + space.start).tolist()
    assert isinstance(space, spaces.Box)
    shape, dtype = (-1, *space.shape), space.dtype
    return lambda actions: list(np.clip(actions.reshape(shape), space.low, space.high).astype(dtype))
