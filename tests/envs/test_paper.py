"""The paper's profile against a slow transcription, frame by frame."""

from __future__ import annotations

from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest

from dba3c import envs
from dba3c.envs.paper import PaperEnv
from dba3c.types import Array
from tests.envs.playing import Reference, check_against, env_settings


class PaperReference(gymnasium.Env[Any, Any]):
    """Gym's Breakout-v0 of 2017 and the history of the paper's program, one frame at a time, kept in lists."""

    def __init__(self, game: str, step_limit: int) -> None:
        self._env = ale_py.AtariEnv(game, obs_type="rgb", frameskip=(2, 5), repeat_action_probability=0.25)
        self._step_limit = step_limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        frame, info = self._env.reset(seed=seed, options=options)
        self._frames = [np.zeros_like(frame)] * 3 + [frame]
        return self._observation(), dict(info)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        frame, reward, over, _, info = self._env.step(action)
        self._frames.append(frame)
        return self._observation(), reward, over, len(self._frames) - 4 >= self._step_limit, dict(info)

    def _observation(self) -> Array:
        small = [cv2.resize(frame, (84, 84), interpolation=cv2.INTER_LINEAR) for frame in self._frames[-4:]]
        return np.array([frame[:, :, colour] for frame in small for colour in range(3)])


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_paper_profile_is_the_slow_transcription(game: str) -> None:
    env = envs.make(env_settings("paper", game, life_loss_terminal=True), 1, threads=1)
    check_against(env, Reference(PaperReference(game, 10_000), 5), 5, steps=500, episodes=1)


def test_paper_profile_counts_the_step_limit_as_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaperEnv, "STEP_LIMIT", 30)
    env = envs.make(env_settings("paper", "pong"), 1, threads=1)
    check_against(env, Reference(PaperReference("pong", 30), 3), 3, steps=100, episodes=3)
