"""export: an agent is kept in half the precision, with the score of its own weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dba3c.actors.single_episodes import play
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.envs.atari_names import resolve_game
from dba3c.envs.starts import decode
from dba3c.export import main
from dba3c.run_files import checkpoint, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.training import build
from dba3c.training.evaluation import read_starts
from tests.fakes.agents import UPDATES, saved, small, untrained
from tests.fakes.made_up_runs import ended, row, write_run
from tests.fakes.settings import settings


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
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory; what comes with dba3c is elsewhere."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(trained_agents, "AGENTS", tmp_path / "agents")
    return tmp_path / "here"


def exported() -> Checkpoint:
    return trained_agents.find(Path("space_invaders.npz"))


def test_an_exported_agent_is_the_checkpoint_in_half_the_precision(run_dir: Path, here: Path, config: Config) -> None:
    assert main([str(run_dir)]) == 0
    agent, whole = exported(), untrained(config)
    assert agent.config == config
    assert agent.progress == whole.progress | {"evaluation_score": 123.0}
    assert agent.weights.dtype == np.float32
    np.testing.assert_allclose(agent.weights, whole.weights, rtol=2**-10, atol=1e-7)
    assert agent.optimizer == {}
    size = (here / "space_invaders.npz").stat().st_size
    assert size < 2 * whole.weights.size + 5000


def test_the_package_is_left_alone(run_dir: Path, here: Path) -> None:
    assert main([str(run_dir)]) == 0
    assert [path.name for path in here.iterdir()] == ["space_invaders.npz"]
    assert not trained_agents.AGENTS.exists()


def test_an_agent_put_beside_those_of_the_package_is_found_by_its_game(run_dir: Path) -> None:
    assert main([str(run_dir), f"--out={trained_agents.AGENTS / 'space_invaders.npz'}"]) == 0
    found = trained_agents.shipped(resolve_game("SpaceInvaders", "--pretrained"), "SpaceInvaders")
    assert found.progress["updates"] == UPDATES


def test_nothing_in_the_file_is_pickled(run_dir: Path, here: Path) -> None:
    main([str(run_dir)])
    with np.load(here / "space_invaders.npz", allow_pickle=False) as file:
        assert {name: file[name].dtype for name in file.files} == {"meta": np.uint8, "weights": np.float16}
        assert json.loads(bytes(file["meta"]))["progress"]["evaluation_score"] == 123.0


def test_the_score_of_other_weights_is_not_taken(run_dir: Path) -> None:
    (run_dir / "summary.json").write_text(json.dumps({"updates": 3, "evaluation_score": 99.0}), encoding="utf-8")
    main([str(run_dir)])
    assert exported().progress["evaluation_score"] == 12.5


def test_the_file_can_be_named(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_dir), f"--out={tmp_path / 'deep' / 'agent.npz'}"]) == 0
    assert checkpoint.load(tmp_path / "deep" / "agent.npz").progress["updates"] == UPDATES
    (tmp_path / "file").touch()
    assert main([str(run_dir), f"--out={tmp_path / 'file' / 'agent.npz'}"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("game", ["/any/path", "../../escaped", "..", "a/b"])
@pytest.mark.fault(
    37,
    "config.yaml that names a path as its game: dba3c export",
    "refused in one line, code 2; nothing is written",
)
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


def kept_best(run_dir: Path, config: Config) -> None:
    state = untrained(config)
    progress = state.progress | {"updates": 3, "evaluation_score": 99.0}
    trained_agents.save_best(run_dir / "checkpoints", state._replace(progress=progress))


def test_the_weights_that_have_played_best_are_exported(run_dir: Path, config: Config) -> None:
    kept_best(run_dir, config)
    assert main([str(run_dir)]) == 0
    assert exported().progress["updates"] == 3
    assert exported().progress["evaluation_score"] == 99.0
    assert main([str(run_dir), "--newest"]) == 0
    assert exported().progress["updates"] == UPDATES


def test_damaged_best_weights_are_passed_over(
    run_dir: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_best(run_dir, config)
    file = run_dir / "checkpoints" / "best.npz"
    file.write_bytes(file.read_bytes()[:-100])
    assert main([str(run_dir)]) == 0
    assert exported().progress["updates"] == UPDATES
    assert "taking the newest checkpoint" in capsys.readouterr().err


def test_points_of_sampled_episodes_become_the_starts_of_evaluations(here: Path, tmp_path: Path) -> None:
    """Catch's episodes have four steps: one that starts behind the first of them is one step shorter."""
    config = settings("env.game=catch", "env.profile=catch", "model.hidden=16")
    agent = saved(tmp_path / "catcher", config)
    assert main([str(agent), "--starts", "points.json"]) == 0
    points = decode((here / "points.json").read_bytes(), config.env, "points.json")
    assert len(points) == 100
    assert {len(point.actions) for point in points} == {0, 1, 2, 3}
    started = settings("env.game=catch", "env.profile=catch", "evaluate.starts=points.json", "evaluate.games=100")
    policy, steps = build.trained(trained_agents.find(agent)), []
    for number, episode in enumerate(play(started, policy, build.evaluation_env(started, 1), np.arange(100), print)):
        steps.append(len(episode.actions) + len(points[number].actions))
    assert steps == [4] * 100


@pytest.mark.parametrize(("content", "complaint"), [(None, "cannot be read"), ("{}", "holds no start points")])
def test_starts_that_cannot_be_read_are_refused(here: Path, content: str | None, complaint: str) -> None:
    if content is not None:
        (here / "points.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"^evaluate\.starts=points\.json: {complaint}"):
        read_starts(settings("evaluate.starts=points.json"))


def test_networks_are_exported_for_programs_without_us(run_dir: Path, here: Path, config: Config) -> None:
    """In full precision; keras and onnxruntime load them in tests/networks/test_portable.py."""
    assert main([str(run_dir), "--out=agent.keras"]) == 0
    assert main([str(run_dir), "--out=agent.onnx", "--newest"]) == 0
    weights = untrained(config).weights
    assert min((here / name).stat().st_size for name in ("agent.keras", "agent.onnx")) > weights.nbytes


def test_a_network_is_exported_of_an_agent_file_too(run_dir: Path, here: Path) -> None:
    assert main([str(run_dir)]) == 0
    assert main(["space_invaders.npz", "--out=agent.keras"]) == 0
    assert (here / "agent.keras").is_file()


def test_an_agent_whose_network_cannot_be_found_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere.npz", "--out=agent.onnx"]) == 2
    assert capsys.readouterr().err.startswith("dba3c: RUN_DIR=nowhere.npz: is no run directory with checkpoints")
    assert not (here / "agent.onnx").exists()


def test_a_file_of_another_kind_is_refused(run_dir: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_dir), "--out=agent.pb"]) == 2
    assert "'agent.pb': its ending says what is written; use .npz, .keras or .onnx" in capsys.readouterr().err
    assert not (here / "agent.pb").exists()
