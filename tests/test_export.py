"""export: an agent is kept in half the precision, with the score of its own weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dba3c.config.schema import Config
from dba3c.envs.atari_names import resolve_game
from dba3c.export import main
from dba3c.run_files import checkpoint, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from tests.fakes.agents import UPDATES, saved, small, untrained
from tests.fakes.made_up_runs import ended, row, write_run


@pytest.fixture(scope="module")
def config() -> Config:
    return small()


@pytest.fixture
def run_dir(tmp_path: Path, config: Config) -> Path:
    """A run directory with a checkpoint."""
    rows = [row(1)]
    path = write_run(tmp_path / "run", rows, ended(rows, updates=UPDATES, evaluation_score=123.0))
    (path / "config.yaml").write_text(config.dump(), encoding="utf-8")
    return saved(path, config)


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trained_agents, "AGENTS", tmp_path / "agents")
    return tmp_path / "agents"


def shipped(game: str) -> Checkpoint:
    return trained_agents.shipped(resolve_game(game, "--pretrained"), game)


def test_an_exported_agent_is_the_checkpoint_in_half_the_precision(run_dir: Path, agents: Path, config: Config) -> None:
    assert main([str(run_dir)]) == 0
    agent, whole = shipped("SpaceInvaders"), untrained(config)
    assert agent.config == config
    assert agent.progress == whole.progress | {"evaluation_score": 123.0}
    assert agent.weights.dtype == np.float32
    np.testing.assert_allclose(agent.weights, whole.weights, rtol=2**-10, atol=1e-7)
    assert agent.optimizer == {}
    size = (agents / "space_invaders.npz").stat().st_size
    assert size < 2 * whole.weights.size + 5000


def test_nothing_in_the_file_is_pickled(run_dir: Path, agents: Path) -> None:
    main([str(run_dir)])
    with np.load(agents / "space_invaders.npz", allow_pickle=False) as file:
        assert {name: file[name].dtype for name in file.files} == {"meta": np.uint8, "weights": np.float16}
        assert json.loads(bytes(file["meta"]))["progress"]["evaluation_score"] == 123.0


def test_the_score_of_other_weights_is_not_taken(run_dir: Path) -> None:
    (run_dir / "summary.json").write_text(json.dumps({"updates": 3, "evaluation_score": 99.0}), encoding="utf-8")
    main([str(run_dir)])
    assert shipped("space_invaders").progress["evaluation_score"] == 12.5


def test_the_file_can_be_named(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_dir), f"--out={tmp_path / 'deep' / 'agent.npz'}"]) == 0
    assert checkpoint.load(tmp_path / "deep" / "agent.npz").progress["updates"] == UPDATES
    (tmp_path / "file").touch()
    assert main([str(run_dir), f"--out={tmp_path / 'file' / 'agent.npz'}"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("game", ["/any/path", "../../escaped", "..", "a/b"])
def test_a_run_cannot_choose_where_its_agent_is_written(
    run_dir: Path, tmp_path: Path, config: Config, game: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    path = str(tmp_path / "escaped") if game == "/any/path" else game
    crafted = config.model_copy(update={"env": config.env.model_copy(update={"game": path})})
    (run_dir / "config.yaml").write_text(crafted.dump(), encoding="utf-8")
    assert main([str(run_dir)]) == 2
    error = capsys.readouterr().err
    assert "env.game=" in error
    assert "plain name" in error
    assert error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
