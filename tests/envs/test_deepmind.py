"""The deepmind profile against gymnasium's wrappers, frame by frame."""

from __future__ import annotations

from functools import partial
from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from dba3c import envs
from dba3c.envs import deepmind
from tests.envs.playing import Reference, check_against, env_settings


def deepmind_reference(game: str) -> gymnasium.Env[Any, Any]:
    """No no-ops, because the two draw them from different generators; black frames before the first."""
    frames = ale_py.AtariEnv(game, obs_type="grayscale", frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariPreprocessing(frames, noop_max=0), 4, padding_type="zero")


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_deepmind_profile_is_gymnasiums(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepmind, "AtariVectorEnv", partial(AtariVectorEnv, noop_max=0))
    env = envs.make(env_settings("deepmind", game, fire_reset=False, life_loss_terminal=True), 1, threads=1)
    check_against(env, Reference(deepmind_reference(game), 3), 3, steps=600, episodes=1)


@pytest.mark.parametrize(("game", "fire_reset"), [("breakout", True), ("seaquest", True), ("seaquest", False)])
def test_deepmind_games_start_with_fire_and_up_to_30_no_ops(game: str, fire_reset: bool) -> None:
    frames = ale_py.AtariEnv(game, obs_type="grayscale", frameskip=1, repeat_action_probability=0.0)
    frame = frames.reset(seed=0)[0]
    fire = frames.get_action_meanings().index("FIRE")
    starts = [frames.step(fire)[0] if fire_reset else frame]
    starts += [frames.step(0)[0] for _ in range(30)]
    small = [cv2.resize(start, (84, 84), interpolation=cv2.INTER_AREA) for start in starts]
    first = envs.make(env_settings("deepmind", game, fire_reset=fire_reset), 4, threads=1).reset(np.arange(1, 5))
    assert not first[:, :-1].any()
    chosen = [[n for n, start in enumerate(small) if (start == frame[-1]).all()] for frame in first]
    assert all(chosen)
    assert len({tuple(n) for n in chosen}) >= 3
