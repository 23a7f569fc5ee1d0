"""What holds for every profile: raw rewards, lives, seeds, limits, shapes."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c import envs
from dba3c.types import Array, Step
from tests.envs.playing import env_settings, random_play

PROFILES = ("deepmind", "paper")
ARRAYS = Step._fields[:4]  # of which each simulator has a row


@pytest.fixture(scope="module", params=PROFILES)
def seaquest(request: pytest.FixtureRequest) -> list[tuple[Step, Array]]:
    """Steps of two simulators, and copies of their observations from when these were new."""
    env = envs.make(env_settings(request.param, "seaquest"), 2, threads=1)
    return [(step, step.observations.copy()) for _, step in random_play(env, [1, 2], 300)]


def test_rewards_are_raw(seaquest: list[tuple[Step, Array]]) -> None:
    assert max(step.rewards.max() for step, _ in seaquest) == 20.0


def test_observations_stay_as_they_are_while_the_simulators_go_on(seaquest: list[tuple[Step, Array]]) -> None:
    for step, copy in seaquest:
        np.testing.assert_array_equal(step.observations, copy)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_lost_life_is_terminal_only_if_configured(profile: str) -> None:
    """Breakout has five lives: four are lost before the game ends with the fifth."""
    terminal, ended = dict[bool, list[int]](), dict[bool, int]()
    for configured in (True, False):
        env = envs.make(env_settings(profile, "breakout", life_loss_terminal=configured), 1, threads=1)
        terminal[configured] = []
        for t, (_, step) in enumerate(random_play(env, [5], 500)):
            terminal[configured] += [t] * bool(step.terminal[0])
            if step.ended[0]:
                ended[configured] = t
                break
    assert ended[True] == ended[False]
    assert terminal[False] == [ended[False]]
    assert len(terminal[True]) == 5
    assert terminal[True][-1] == ended[True]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_simulators_play_depends_neither_on_its_neighbours_nor_on_the_threads(profile: str) -> None:
    seeds, config = [11, 2_000_000_011], env_settings(profile, "space_invaders")
    one_thread, two_threads = (
        list(random_play(envs.make(config, len(seeds), threads, max_frames=240), seeds, 120)) for threads in (1, 2)
    )
    assert any(step.ended.any() for _, step in one_thread)
    for simulator, seed in enumerate(seeds):
        alone = envs.make(config, 1, 1, max_frames=240)
        start = alone.reset(np.array([seed], np.int32))
        np.testing.assert_array_equal(start[0], one_thread[0][1].observations[simulator])
        for (actions, whole), (_, threaded) in zip(one_thread[1:], two_threads[1:], strict=True):
            step = alone.step(actions[simulator : simulator + 1])
            for name in ARRAYS:
                mine = getattr(step, name)[0]
                np.testing.assert_array_equal(mine, getattr(whole, name)[simulator], err_msg=name)
                np.testing.assert_array_equal(mine, getattr(threaded, name)[simulator], err_msg=name)


@pytest.mark.parametrize("profile", PROFILES)
def test_same_seeds_same_play_and_other_seeds_other_play(profile: str) -> None:
    env = envs.make(env_settings(profile, "seaquest"), 2, threads=2)
    first, again, other = ([step for _, step in random_play(env, seeds, 60)] for seeds in ([1, 2], [1, 2], [3, 4]))
    for one, two in zip(first, again, strict=True):
        for name, a, b in zip(Step._fields, one, two, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert any((one.observations != two.observations).any() for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize(("profile", "steps"), [("deepmind", 100), ("paper", 133)])
def test_max_frames_ends_a_game(profile: str, steps: int) -> None:
    """400 frames are 100 steps of 4, or 133 of 3 on average."""
    env = envs.make(env_settings(profile, "pong"), 1, threads=1, max_frames=400)
    played = list(enumerate(random_play(env, [1], 300)))
    ended = [t for t, (_, step) in played if step.ended[0] and step.terminal[0]]
    assert ended == list(range(steps, 301, steps))
    assert [t for t, (_, step) in played[1:] if step.cut[0]] == ended


@pytest.mark.parametrize("profile", PROFILES)
def test_a_game_that_comes_to_its_end_is_not_cut(profile: str) -> None:
    env = envs.make(env_settings(profile, "breakout"), 1, threads=1)
    last = next(step for _, step in list(random_play(env, [5], 700))[1:] if step.ended[0])
    assert not last.cut[0]


@pytest.mark.parametrize(("profile", "channels"), [("deepmind", 4), ("paper", 12)])
def test_shapes_and_actions(profile: str, channels: int) -> None:
    env = envs.make(env_settings(profile, "breakout"), 2, threads=1)
    assert (env.n_sim, env.action_space.n, env.observation_space.shape) == (2, 4, (channels, 84, 84))
    for _, step in random_play(env, [1, 2], 2):
        assert step.observations.shape == (2, channels, 84, 84)
        assert step.observations.dtype == np.uint8
