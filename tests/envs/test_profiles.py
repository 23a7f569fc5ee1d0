"""Pre-processing against gymnasium's wrappers and slow transcriptions, frame by frame; seeds, lives, limits, names."""

from __future__ import annotations

from collections.abc import Iterator
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
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.envs import deepmind
from dba3c.envs.atari_names import resolve_game
from dba3c.envs.paper import PaperEnv
from dba3c.types import Array, Step, VectorEnv
from tests.fakes.settings import settings

PROFILES = ("deepmind", "paper")
ARRAYS = Step._fields[:4]  # of which each simulator has a row


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


def deepmind_reference(game: str) -> gymnasium.Env[Any, Any]:
    """No no-ops, because the two draw them from different generators; black frames before the first."""
    frames = ale_py.AtariEnv(game, obs_type="grayscale", frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariPreprocessing(frames, noop_max=0), 4, padding_type="zero")


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


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_deepmind_profile_is_gymnasiums(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepmind, "AtariVectorEnv", partial(AtariVectorEnv, noop_max=0))
    env = envs.make(env_settings("deepmind", game, fire_reset=False, life_loss_terminal=True), 1, threads=1)
    check_against(env, Reference(deepmind_reference(game), 3), 3, steps=800, episodes=1)


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_paper_profile_is_the_slow_transcription(game: str) -> None:
    env = envs.make(env_settings("paper", game, life_loss_terminal=True), 1, threads=1)
    check_against(env, Reference(PaperReference(game, 10_000), 3), 3, steps=800, episodes=1)


def test_paper_profile_counts_the_step_limit_as_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaperEnv, "STEP_LIMIT", 30)
    env = envs.make(env_settings("paper", "pong"), 1, threads=1)
    check_against(env, Reference(PaperReference("pong", 30), 3), 3, steps=100, episodes=3)


@pytest.mark.parametrize("fire_reset", [True, False])
@pytest.mark.parametrize("game", ["breakout", "seaquest"])
def test_deepmind_games_start_with_fire_and_up_to_30_no_ops(game: str, fire_reset: bool) -> None:
    frames = ale_py.AtariEnv(game, obs_type="grayscale", frameskip=1, repeat_action_probability=0.0)
    frame = frames.reset(seed=0)[0]
    fire = frames.get_action_meanings().index("FIRE")
    starts = [frames.step(fire)[0] if fire_reset else frame]
    starts += [frames.step(0)[0] for _ in range(30)]
    small = [cv2.resize(start, (84, 84), interpolation=cv2.INTER_AREA) for start in starts]
    first = envs.make(env_settings("deepmind", game, fire_reset=fire_reset), 6, threads=1).reset(np.arange(1, 7))
    assert not first[:, :-1].any()
    chosen = [[n for n, start in enumerate(small) if (start == frame[-1]).all()] for frame in first]
    assert all(chosen)
    if fire_reset or game == "seaquest":  # without FIRE nothing moves in Breakout, so nothing tells the no-ops apart
        assert len({tuple(n) for n in chosen}) >= 4


@pytest.mark.parametrize("profile", PROFILES)
def test_rewards_are_raw(profile: str) -> None:
    env = envs.make(env_settings(profile, "seaquest"), 2, threads=1)
    assert max(step.rewards.max() for _, step in random_play(env, [1, 2], 300)) == 20.0


@pytest.mark.parametrize("profile", PROFILES)
def test_a_lost_life_is_terminal_only_if_configured(profile: str) -> None:
    """Breakout has five lives: four are lost before the game ends with the fifth."""
    terminal, ended = {}, {}
    for configured in (True, False):
        env = envs.make(env_settings(profile, "breakout", life_loss_terminal=configured), 1, threads=1)
        steps = [step for _, step in random_play(env, [5], 500)]
        last = next(t for t, step in enumerate(steps) if step.ended[0])
        terminal[configured] = [t for t, step in enumerate(steps[: last + 1]) if step.terminal[0]]
        ended[configured] = last
    assert ended[True] == ended[False]
    assert terminal[False] == [ended[False]]
    assert len(terminal[True]) == 5
    assert terminal[True][-1] == ended[True]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_simulators_play_does_not_depend_on_its_neighbours(profile: str, threads: int) -> None:
    seeds, config = [11, 7, 2_000_000_011, 0], env_settings(profile, "space_invaders")
    together = list(random_play(envs.make(config, 4, threads, max_frames=240), seeds, 150))
    assert any(step.ended.any() for _, step in together)
    for simulator, seed in enumerate(seeds):
        alone = envs.make(config, 1, 1, max_frames=240)
        start = alone.reset(np.array([seed], np.int32))
        np.testing.assert_array_equal(start[0], together[0][1].observations[simulator])
        for actions, whole in together[1:]:
            step = alone.step(actions[simulator : simulator + 1])
            for name, one, all_four in zip(ARRAYS, step, whole, strict=False):
                np.testing.assert_array_equal(one[0], all_four[simulator], err_msg=name)


@pytest.mark.parametrize("profile", PROFILES)
def test_same_seeds_same_play_and_other_seeds_other_play(profile: str) -> None:
    env = envs.make(env_settings(profile, "seaquest"), 2, threads=2)
    first, again, other = ([step for _, step in random_play(env, seeds, 60)] for seeds in ([1, 2], [1, 2], [3, 4]))
    for one, two in zip(first, again, strict=True):
        for name, a, b in zip(Step._fields, one, two, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert any((one.observations != two.observations).any() for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("profile", PROFILES)
def test_observations_stay_as_they_are_while_the_simulators_go_on(profile: str) -> None:
    env = envs.make(env_settings(profile, "seaquest"), 2, threads=1)
    steps = [(step, step.observations.copy()) for _, step in random_play(env, [1, 2], 8)]
    for step, copy in steps:
        np.testing.assert_array_equal(step.observations, copy)


@pytest.mark.parametrize(("profile", "steps"), [("deepmind", 100), ("paper", 133)])
def test_max_frames_ends_a_game(profile: str, steps: int) -> None:
    """400 frames are 100 steps of 4, or 133 of 3 on average."""
    env = envs.make(env_settings(profile, "pong"), 1, threads=1, max_frames=400)
    ended = [t for t, (_, step) in enumerate(random_play(env, [1], 300)) if step.ended[0] and step.terminal[0]]
    assert ended == list(range(steps, 301, steps))


@pytest.mark.parametrize(("profile", "channels"), [("deepmind", 4), ("paper", 12)])
def test_shapes_and_actions(profile: str, channels: int) -> None:
    env = envs.make(env_settings(profile, "breakout"), 3, threads=1)
    assert (env.n_sim, env.action_space.n, env.observation_space.shape) == (3, 4, (channels, 84, 84))
    for _, step in random_play(env, [1, 2, 3], 2):
        assert step.observations.shape == (3, channels, 84, 84)
        assert step.observations.dtype == np.uint8


@pytest.mark.parametrize("name", ["SpaceInvaders", "space-invaders", "space_invaders", "SPACE INVADERS"])
def test_games_may_be_written_in_many_ways(name: str) -> None:
    assert resolve_game(name, "env.game") == "space_invaders"
    assert resolve_game("Breakout", "env.game") == "breakout"


@pytest.mark.parametrize("field", ["env.game", "targets"])
@pytest.mark.parametrize(("name", "near"), [("Brakeout", "breakout"), ("space_invader", "spaceinvaders")])
def test_an_unknown_game_is_refused_with_near_ones(name: str, near: str, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"{field}='{name}'.*did you mean.*{near}") as refused:
        resolve_game(name, field)
    assert resolve_game(near, field)  # what is proposed is accepted
    assert "\n" not in str(refused.value)


def test_a_name_like_no_other_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="no such game"):
        resolve_game("???", "env.game")
