"""Frames of the emulator, in colour: they are those that the agent saw, small and gray."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from dba3c.film.emulator_frames import frames_of
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.training import build
from tests.fakes.agents import small


@pytest.mark.parametrize(("game", "sticky"), [("breakout", 0.0), ("breakout", 0.25), ("seaquest", 0.0)])
def test_deepmind_frames_are_those_that_the_agent_saw(game: str, sticky: float) -> None:
    """In colour, every frame; gray and small they are the agent's, up to how gray is made of colours."""
    config = small(f"evaluate.sticky={sticky}", f"env.game={game}", "evaluate.max_frames=27000")
    seed = int(game_seeds(1, EVALUATION, 0, np.arange(1))[0])
    draw = np.random.default_rng(0)
    env = build.evaluation_env(config, threads=1)(1)
    env.reset(np.array([seed]))
    actions = draw.integers(env.action_space.n, size=200).tolist()
    for number, frames in enumerate(frames_of(config.evaluation_env, seed, actions)):
        step = env.step(np.array([actions[number]], np.int32))
        assert sum(frame.reward for frame in frames) == step.rewards[0]
        if step.ended[0]:
            break
        assert len(frames) == 4
        gray = [cv2.cvtColor(frame.picture, cv2.COLOR_RGB2GRAY) for frame in frames[-2:]]
        seen = cv2.resize(np.maximum(*gray), (84, 84), interpolation=cv2.INTER_AREA)
        assert np.abs(seen.astype(int) - step.observations[0, -1]).max() <= 3


def test_paper_frames_are_those_that_the_agent_saw() -> None:
    config = small("env.profile=paper", "env.game=breakout", "evaluate.max_frames=27000")
    draw, lengths = np.random.default_rng(0), set()
    env = build.evaluation_env(config, threads=1)(1)
    env.reset(np.array([11]))
    actions = draw.integers(env.action_space.n, size=400).tolist()
    for number, frames in enumerate(frames_of(config.env, 11, actions)):
        step = env.step(np.array([actions[number]], np.int32))
        assert sum(frame.reward for frame in frames) == step.rewards[0]
        if step.ended[0]:
            break
        lengths.add(len(frames))
        small_picture = cv2.resize(frames[-1].picture, (84, 84)).transpose(2, 0, 1)
        np.testing.assert_array_equal(small_picture, step.observations[0, -3:])
    assert lengths == {2, 3, 4}
