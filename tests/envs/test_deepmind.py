"""The deepmind profile against gymnasium's wrappers, frame by frame."""

from __future__ import annotations

from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from ale_py import roms
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from dba3c import envs
from tests.envs.playing import Reference, check_against, env_settings, random_play


def deepmind_reference(game: str) -> gymnasium.Env[Any, Any]:
    """No no-ops, because the two draw them from different generators; black frames before the first."""
    frames = ale_py.AtariEnv(game, obs_type="grayscale", frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariPreprocessing(frames, noop_max=0), 4, padding_type="zero")


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_deepmind_profile_is_gymnasiums(game: str) -> None:
    env = envs.make(env_settings("deepmind", game, fire_reset=False, life_loss_terminal=True, noop_max=0), 1, threads=1)
    check_against(env, Reference(deepmind_reference(game), 3), 3, steps=600, episodes=1)


@pytest.mark.parametrize("full", [False, True])
def test_sticky_actions_are_drawn_in_every_frame_as_the_emulator_does(full: bool) -> None:
    """Against the emulator itself, which repeats the previous action with probability 0.25, frame by frame."""
    emulator = ale_py.ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.25)
    emulator.setInt("random_seed", 7)
    emulator.loadROM(roms.get_rom_path("breakout"))
    emulator.reset_game()
    actions = emulator.getLegalActionSet() if full else emulator.getMinimalActionSet()
    changes = {"fire_reset": False, "noop_max": 0, "full_action_space": full}
    env, exact = (
        envs.make(env_settings("deepmind", "breakout", sticky=sticky, **changes), 1, threads=1)
        for sticky in (0.25, 0.0)
    )
    assert env.action_space.n == len(actions) == (18 if full else 4)
    exact.reset(np.array([7], np.int32))
    for _, (chosen, step) in zip(range(150), list(random_play(env, [7], 150))[1:], strict=True):
        frames = []
        reward = 0
        for _ in range(4):
            reward += emulator.act(actions[int(chosen[0])])
            frames.append(emulator.getScreenGrayscale())
        small = cv2.resize(np.maximum(*frames[-2:]).squeeze(), (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(step.observations[0, -1], small)
        assert step.rewards[0] == reward
        last = exact.step(chosen).observations
    assert (last != step.observations).any()  # without sticky actions the same ones lead elsewhere


@pytest.mark.parametrize("most", [0, 3])
def test_noop_max_is_the_most_frames_before_an_episode(most: int) -> None:
    config = env_settings("deepmind", "seaquest", fire_reset=False, noop_max=most)
    first = envs.make(config, 8, threads=1).reset(np.arange(1, 9))
    different = {frame[-1].tobytes() for frame in first}
    assert 1 + (most > 0) <= len(different) <= most + 1


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
