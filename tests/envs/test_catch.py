"""Catch: what is shown, what is rewarded, and what a film shows of it."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c import envs
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.film.emulator_frames import frames_of
from dba3c.types import Array

LEFT, STAY, RIGHT = 0, 1, 2


def catch(*overrides: str) -> Env:
    return loading.load("catch", overrides).env


def cells(observations: Array) -> Array:
    """[n, 1, 4·w, 4·w] → [n, w, w] bool"""
    return np.asarray(observations[:, 0, ::4, ::4] == 255)


def towards(shown: Array) -> Array:
    """Actions that bring each paddle below its ball."""
    balls = np.argmax(shown[:, :-1].any(axis=1), axis=1)
    return 1 + np.sign(balls - np.argmax(shown[:, -1], axis=1)).astype(np.int32)


@pytest.mark.parametrize("width", [5, 6, 21])
def test_who_follows_the_ball_catches_it_and_who_does_not_may_miss(width: int) -> None:
    env = envs.make(catch(f"env.width={width}"), 40, threads=1)
    observations = env.reset(np.arange(40))
    assert observations.shape == (40, *env.observation_space.shape) == (40, 1, 4 * width, 4 * width)
    balls = np.argmax(cells(observations)[:, 0], axis=1)
    assert len(set(balls.tolist())) > width // 2
    for row in range(width - 1):
        shown = cells(observations)
        np.testing.assert_array_equal(shown[:, row].argmax(axis=1), balls)
        step = env.step(towards(shown))
        assert step.ended.all() == step.terminal.all() == (row == width - 2)
        np.testing.assert_array_equal(step.rewards, float(row == width - 2))
        observations = step.observations
    assert cells(observations)[:, 0].any(axis=1).all()  # the next ball
    balls = np.argmax(cells(observations)[:, 0], axis=1)
    last = [env.step(np.full(40, STAY, np.int32)) for _ in range(width - 1)][-1]
    np.testing.assert_array_equal(last.rewards, np.where(balls == width // 2, 1.0, -1.0))


def test_the_walls_hold_the_paddle() -> None:
    env = envs.make(catch(), 2, threads=1)
    env.reset(np.arange(2))
    shown = [cells(env.step(np.array([LEFT, RIGHT], np.int32)).observations)[:, -1] for _ in range(3)]
    assert [row.argmax(axis=1).tolist() for row in shown] == [[1, 3], [0, 4], [0, 4]]


def test_a_blind_agent_sees_the_ball_in_the_first_row_only() -> None:
    env = envs.make(catch("env.blind=true"), 8, threads=1)
    seeing = envs.make(catch(), 8, threads=1)
    first = env.reset(np.arange(8))
    np.testing.assert_array_equal(first, seeing.reset(np.arange(8)))
    for _ in range(3):
        actions = np.full(8, STAY, np.int32)
        hidden, whole = cells(env.step(actions).observations), cells(seeing.step(actions).observations)
        assert not hidden[:, :-1].any()
        np.testing.assert_array_equal(hidden[:, -1], whole[:, -1])
        assert whole[:, :-1].any(axis=(1, 2)).all()


def test_a_film_shows_what_was_seen_and_the_catch() -> None:
    config = catch()
    env = envs.make(config, 1, threads=1)
    shown = cells(env.reset(np.array([3])))
    actions: list[int] = []
    seen = []
    for _ in range(4):
        actions.append(int(towards(shown)[0]))
        shown = cells(env.step(np.array(actions[-1:])).observations)
        seen.append(shown[0])
    filmed = list(frames_of(config, 3, actions))
    for frames, cells_seen in zip(filmed[:3], seen[:3], strict=True):
        np.testing.assert_array_equal(frames[0].picture[::42, ::42].any(axis=2), cells_seen)
    assert [sum(frame.reward for frame in frames) for frames in filmed] == [0, 0, 0, 1]
    assert np.count_nonzero(filmed[-1][0].picture[::42, ::42].any(axis=2)) == 1  # the ball lies on the paddle


def test_names_are_those_of_the_profile() -> None:
    assert envs.resolve_title("catch", "Catch", "env.game") == "catch"
    assert envs.resolve_title("paper", "SpaceInvaders", "env.game") == "space_invaders"
    with pytest.raises(ConfigError, match=r"env.game='pong': env.profile=catch has one game; write catch"):
        envs.resolve_title("catch", "pong", "env.game")
    assert envs.fingerprint(catch()) == {}
    assert list(envs.fingerprint(loading.load("paper").env)) == ["the ROM of breakout"]
