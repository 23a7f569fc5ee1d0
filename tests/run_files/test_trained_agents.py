"""Agents that come with the package: found by the name of their game, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.envs.atari_names import resolve_game
from dba3c.run_files import trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from tests.fakes.agents import small


@pytest.fixture(scope="module")
def config() -> Config:
    return small()


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trained_agents, "AGENTS", tmp_path / "agents")
    return tmp_path / "agents"


def shipped(game: str) -> Checkpoint:
    return trained_agents.shipped(resolve_game(game, "--pretrained"), game)


def test_a_game_without_an_agent_is_refused_with_those_that_have_one(agents: Path, config: Config) -> None:
    with pytest.raises(ConfigError, match=r"no agent of this game comes with dba3c; known: none$"):
        shipped("pong")
    trained_agents.save(
        agents / "space_invaders.npz", Checkpoint(np.ones(3, np.float32), {}, {"updates": 1}, config, {})
    )
    with pytest.raises(ConfigError, match=r"--pretrained=pong: no agent .*; known: space_invaders$"):
        shipped("pong")
    with pytest.raises(ConfigError, match="did you mean pong"):
        shipped("pnog")


def test_a_damaged_agent_is_told(agents: Path) -> None:
    agents.mkdir()
    (agents / "pong.npz").write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"pong\.npz is not a checkpoint"):
        shipped("pong")


def test_weights_that_do_not_fit_are_refused(tmp_path: Path, config: Config) -> None:
    huge = Checkpoint(np.array([1.0, 1e6], np.float32), {}, {"updates": 1}, config, {})
    with pytest.raises(ConfigError, match="65504"):
        trained_agents.save(tmp_path / "huge.npz", huge)
    assert not (tmp_path / "huge.npz").exists()
