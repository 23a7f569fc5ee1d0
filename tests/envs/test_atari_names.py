"""Names of games: written in many ways, and near ones for those that do not exist."""

from __future__ import annotations

import pytest

from dba3c.config.messages import ConfigError
from dba3c.envs.atari_names import games, resolve_game


@pytest.mark.parametrize("name", ["SpaceInvaders", "space-invaders", "space_invaders", "SPACE INVADERS"])
def test_games_may_be_written_in_many_ways(name: str) -> None:
    assert resolve_game(name, "env.game") == "space_invaders"
    assert resolve_game("Breakout", "env.game") == "breakout"


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "Pong-v0", "PongNoFrameskip-v4", "PongDeterministic-v4"])
def test_names_of_gymnasium_are_accepted(name: str) -> None:
    assert resolve_game(name, "env.game") == "pong"
    assert resolve_game("ALE/SpaceInvaders-v5", "env.game") == "space_invaders"


def test_games_are_those_that_one_can_play() -> None:
    assert {"breakout", "pong", "skiing"} < set(games())
    assert all(resolve_game(game, "env.game") == game for game in games())


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


@pytest.mark.parametrize("name", ["combat", "Joust", "maze-craze", "WARLORDS"])
@pytest.mark.fault(49, "game for two players only", "refused with the reason, code 2")
def test_games_for_two_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"env.game='{name}': .* two players .*; choose another"):
        resolve_game(name, "env.game")
