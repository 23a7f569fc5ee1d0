"""Random play of real simulators, and a reference to hold against it step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

from dba3c.config.schema import Env
from dba3c.types import Array, Step, VectorEnv
from tests.fakes.settings import settings


def env_settings(profile: str, game: str, **changes: Any) -> Env:
    return settings().env.model_copy(update={"profile": profile, "game": game, "life_loss_terminal": False} | changes)


def random_play(env: VectorEnv, seeds: list[int], steps: int, actions_from: int = 0) -> Iterator[tuple[Array, Step]]:
    """The actions and what they led to; the first step is the reset, without actions."""
    draw = np.random.default_rng(actions_from)
    nothing = np.zeros(env.n_sim)
    yield nothing, Step(env.reset(np.array(seeds, np.int32)), nothing, nothing > 0, nothing > 0)
    for _ in range(steps):
        actions = draw.integers(env.action_space.n, size=env.n_sim).astype(np.int32)
        yield actions, env.step(actions)


class Reference:
    """One simulator whose games restart by themselves, from gymnasium's own parts."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        self._env = env
        self.observation, info = env.reset(seed=seed)
        self._lives: int = info["lives"]

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Raw reward, whether the game ended, whether a life was lost or the game ended."""
        self.observation, reward, terminated, truncated, info = self._env.step(action)
        ended, lost = terminated or truncated, info["lives"] < self._lives
        if ended:
            self.observation, info = self._env.reset()
        self._lives = info["lives"]
        return float(reward), ended, ended or lost


def check_against(env: VectorEnv, reference: Reference, seed: int, steps: int, episodes: int) -> None:
    """Every pixel, reward and flag of `steps` random steps in at least `episodes` games."""
    ended = 0
    for t, (actions, step) in enumerate(random_play(env, [seed], steps)):
        if t:
            reward, over, terminal = reference.step(int(actions[0]))
            assert (step.rewards[0], step.ended[0], step.terminal[0]) == (reward, over, terminal), f"step {t}"
            ended += over
        np.testing.assert_array_equal(step.observations[0], reference.observation, err_msg=f"step {t}")
    assert ended >= episodes
