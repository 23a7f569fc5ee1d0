"""The gymnasium profile: observations and actions of every kind, truncation, limits, ids, packages."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dba3c import envs
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.envs.gymnasium_env import GymnasiumEnv
from dba3c.types import Array, Step
from tests.envs.playing import env_settings
from tests.fakes.own_envs import LENGTH

OWN = "tests.fakes.own_envs:Own/"


def config(game: str) -> Env:
    return env_settings("gymnasium", game)


def make(game: str, n_sim: int = 1, max_frames: int | None = None) -> GymnasiumEnv:
    return GymnasiumEnv(config(game), n_sim, 1, max_frames)


def play(env: GymnasiumEnv, steps: int, seeds: tuple[int, ...] = (0,), action: Array | None = None) -> list[Step]:
    env.reset(np.array(seeds))
    shape = env.action_space.shape or ()
    actions = (
        np.zeros((env.n_sim, *shape), env.action_space.dtype) if action is None else np.stack([action] * env.n_sim)
    )
    return [env.step(actions) for _ in range(steps)]


def test_a_vector_is_shown_as_it_is_in_32_bits() -> None:
    env = make("CartPole-v1", 2)
    first = env.reset(np.array([3, 4]))
    assert (env.observation_space.shape, first.dtype, first.shape) == ((4,), np.float32, (2, 4))
    assert (env.action_space.n, env.action_space.dtype) == (2, np.int32)  # type: ignore[union-attr]
    assert np.abs(first).max() < 0.05
    assert first[0].tolist() != first[1].tolist()


@pytest.mark.parametrize(
    ("kind", "shape"), [("Picture", (3, 6, 5)), ("Gray", (1, 6, 5)), ("Stack", (4, 8, 8)), ("Dict", (5,))]
)
def test_pictures_become_channel_first_and_the_rest_vectors(kind: str, shape: tuple[int, ...]) -> None:
    env = make(f"{OWN}{kind}-v0")
    (step,) = play(env, 1)
    assert env.observation_space.shape == shape
    assert step.observations.shape == (1, *shape)
    if kind == "Dict":
        assert step.observations[0].tolist() == [0, 1, 0, 0.5, -0.5]
    else:
        assert step.observations.dtype == np.uint8
        shown = step.observations[0, 0, 1] if kind == "Stack" else step.observations[0, :, 0, 1]
        assert set(shown.tolist()) == {1}


def test_continuous_actions_are_clipped_on_the_way_in_only() -> None:
    env = make(f"{OWN}Box-v0")
    given = np.array([0.5, -7.0], np.float32)
    play(env, 1, action=given)
    taken = env._envs[0].unwrapped.given[0]  # type: ignore[attr-defined]
    assert taken.tolist() == [0.5, -2.0]
    assert given.tolist() == [0.5, -7.0]
    assert (env.action_space.shape, env.action_space.dtype) == ((2,), np.float32)


def test_actions_that_do_not_start_at_0() -> None:
    env = make(f"{OWN}Vector-v0")
    play(env, 1, action=np.int32(2))  # type: ignore[arg-type]
    assert env._envs[0].unwrapped.given == [7]  # type: ignore[attr-defined]


def test_a_time_limit_shows_the_final_observation_and_is_not_terminal() -> None:
    *_, last = play(make(f"{OWN}Box-v0", 2), LENGTH, seeds=(1, 2))
    assert last.ended.tolist() == [True, True]
    assert last.terminal.tolist() == [False, False]
    assert last.final_observations[:, 1].tolist() == [LENGTH, LENGTH]
    assert last.observations[:, 1].tolist() == [0, 0]  # the first of the next episode
    assert not last.cut.any()  # the limit is part of the task
    assert last.rewards.tolist() == [2.5, 2.5]


def test_an_end_is_terminal_even_where_the_time_is_up() -> None:
    *_, last = play(make(f"{OWN}Box-v0"), LENGTH, action=np.array([1.0, 0.0], np.float32))
    assert (last.ended[0], last.terminal[0], len(last.final_observations)) == (True, True, 0)


def test_our_own_limit_cuts_an_episode_off() -> None:
    *_, last = play(make(f"{OWN}Box-v0", max_frames=3), 3)
    assert (last.ended[0], last.terminal[0], last.cut[0]) == (True, False, True)


def test_a_simulators_play_depends_on_its_seed_alone() -> None:
    together, alone = (np.stack([step.observations[0] for step in play(make(f"{OWN}Vector-v0", n), 12, seeds)])
                       for n, seeds in ((3, (7, 8, 9)), (1, (7,))))  # fmt: skip
    np.testing.assert_array_equal(together, alone)
    assert len(set(together[:, 0].tolist())) > 1  # each episode has its own start


@pytest.mark.parametrize(
    ("written", "found"),
    [("CartPole-v1", "CartPole-v1"), ("cartpole", "CartPole-v1"), ("CartPole-v0", "CartPole-v0"),
     (f"{OWN}vector", f"{OWN}Vector-v2"), (f"{OWN}Vector-v0", f"{OWN}Vector-v0")],
)  # fmt: skip
def test_ids_may_be_written_in_other_ways(written: str, found: str) -> None:
    assert envs.resolve_title("gymnasium", written, "env.game") == found
    assert envs.profile_of(written) == "gymnasium"


@pytest.mark.parametrize(("game", "profile"), [("ALE/Pong-v5", "paper"), ("Breakut", "paper"), ("Catch", "catch")])
def test_other_games_keep_their_profiles(game: str, profile: str) -> None:
    assert envs.profile_of(game) == profile


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ("CartPol-v1", "no such environment in gymnasium; did you mean CartPole-v1"),
        ("Nonsense-v9", "no such environment in gymnasium; write"),
        ("this:Name-v0", "its package was not loaded; name it on the command line, --plugin=this"),
        (f"{OWN}Vectr-v0", "did you mean Own/Vector-v0"),
    ],
)
def test_an_id_that_does_not_exist_is_refused(game: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^env\.game=") as refused:
        envs.resolve_title(envs.profile_of(game), game, "env.game")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "message"), [("Sequence", "its observations are Seq"), ("Many", "its actions are MultiD")]
)
def test_spaces_that_are_not_supported_are_refused(kind: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^env.game=.*{message}.*choose another environment"):
        make(f"{OWN}{kind}-v0")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if "mujoco" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mujoco", None)  # importing it fails, as where it is not installed
    with pytest.raises(ConfigError, match=r"^env.game=InvertedPendulum-v5: .*dba3c\[mujoco\]"):
        make("InvertedPendulum-v5")


def test_the_ranks_compare_the_versions_of_packages() -> None:
    facts = envs.fingerprint(config("CartPole-v1"))
    assert facts["gymnasium"][0].isdigit()
    assert envs.fingerprint(config(f"{OWN}Vector-v0"))["tests"] == "not installed"
