"""Runs of gymnasium's environments in this process: what they save, how they resume, what plays them again."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dba3c import export, record, train
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_OK
from dba3c.run_files import checkpoint, trained_agents
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from dba3c.training.injected import Faults
from dba3c.training.run import Run
from tests.fakes import registry
from tests.fakes.loopback import Loopback
from tests.fakes.worlds import world

NORMALISED = ("env.normalise_observations=true", "env.normalise_rewards=true")
SMALL = (
    "env.n_sim=2", "model.hidden=8", "actor.n_steps=8", "algorithm.passes=2", "algorithm.minibatches=2",
    "evaluate.games=0", "checkpoint.every_updates=8", "checkpoint.restart_games=true", "train.max_minutes=9",
)  # fmt: skip


def settings(game: str, updates: int, *overrides: str) -> Config:
    """The preset for control, with small segments: four updates for 16 steps."""
    return loading.load("ppo-control", [f"env.game={game}", *SMALL, f"train.total_steps={4 * updates}", *overrides])


def run(run_dir: Path, config: Config) -> checkpoint.Checkpoint:
    run_dir.mkdir(exist_ok=True)
    assert Run(world(), config, run_dir, Faults([], 0)).train() == EXIT_OK
    return trained_agents.find(run_dir)


@pytest.mark.parametrize("game", ["CartPole-v1", "Pendulum-v1"])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, game: str) -> None:
    """The resumed one has lost what came after its save in the middle, as if it had been killed then."""
    config = settings(game, 16, *NORMALISED)
    unbroken = run(tmp_path, config)
    last, middle = checkpoint.newest_first(tmp_path / "checkpoints")
    assert (checkpoint.update_of(last), checkpoint.update_of(middle)) == (14, 8)
    last.unlink()
    resumed = run(tmp_path, config)
    assert unbroken.weights.tobytes() == resumed.weights.tobytes()
    assert {name: value.tobytes() for name, value in unbroken.statistics.items()} == {
        name: value.tobytes() for name, value in resumed.statistics.items()
    }
    assert unbroken.statistics["observations_count"] == 48  # the last segment is not over


@pytest.mark.parametrize("algorithm", [(), ("algorithm.name=a3c",)], ids=["ppo", "a3c"])
def test_an_exported_agent_plays_as_the_one_that_was_trained(tmp_path: Path, algorithm: tuple[str, ...]) -> None:
    config = settings("Pendulum-v1", 8, *NORMALISED, *algorithm)
    trained = run(tmp_path / "run", config)
    assert export.main([str(tmp_path / "run"), "--out", str(tmp_path / "agent.npz")]) == EXIT_OK
    exported = trained_agents.find(tmp_path / "agent.npz")
    assert exported.statistics.keys() == trained.statistics.keys()
    games = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"games": 2, "probe_games": 0})})
    scores = [
        evaluate(games, build.trained(saved), build.evaluation_env(games, 1), Loopback()).mean
        for saved in (trained, exported)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=0.05)  # its weights have 16 bits


def test_a_pendulum_is_balanced(tmp_path: Path) -> None:
    """Continuous actions, learned within 30,000 steps: a thousand steps without a fall are the most there is."""
    overrides = ["env.game=InvertedPendulum-v5", "train.total_steps=30k", "evaluate.games=10", "evaluate.probe_games=0"]
    saved = run(tmp_path, loading.load("ppo-control", overrides))
    assert saved.progress["evaluation_score"] >= 950
    assert saved.progress["target_reached"]


def test_whole_episodes_are_learned_from(tmp_path: Path) -> None:
    changes = ("actor.kind=episodes", "algorithm.name=a3c", "env.n_sim=1", "checkpoint.restart_games=false")
    saved = run(tmp_path, settings("CartPole-v1", 40, *changes))
    assert saved.progress["updates"] < 30  # of about 20 steps each
    assert saved.progress["steps"] >= 160


def test_a_film_of_an_environment(tmp_path: Path) -> None:
    run(tmp_path / "run", settings("CartPole-v1", 8))
    file = tmp_path / "film.mp4"
    assert record.main([str(tmp_path / "run"), "--out", str(file)]) == EXIT_OK
    assert file.stat().st_size > 1000


def test_a_name_is_enough() -> None:
    found = train.parse(["cartpole"], ranks=2)
    assert (found.config.env.game, found.config.env.profile) == ("CartPole-v1", "gymnasium")
    assert (found.run_dir, found.config.target_score) == (Path("runs/CartPole-v1"), 475.0)
    assert "chose ppo-control for CartPole-v1: 2 ranks × 8 simulators" in found.note


def test_the_package_of_an_environment_that_was_typed_is_a_plug_in() -> None:
    with registry.restored():
        found = train.parse(["tests.fakes.own_envs:Own/Box-v0"])
        assert "tests.fakes.own_envs" in found.config.plugins
    assert found.run_dir == Path("runs/tests.fakes.own_envs-Own-Box-v0")
    with pytest.raises(ConfigError, match=r"^env\.game='no_such_package:X-v0': .*No module named 'no_such_package'"):
        train.parse(["no_such_package:X-v0"])


def test_no_file_names_code_that_is_then_executed(tmp_path: Path) -> None:
    hostile = tmp_path / "config.yaml"
    hostile.write_text("env: {game: 'this:Name-v0', profile: gymnasium}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^env\.game='this:Name-v0': its package was not loaded"):
        train.parse(["--config", str(hostile)])
    assert "this" not in sys.modules


def test_a_torso_for_pictures_is_refused_for_vectors() -> None:
    with pytest.raises(ConfigError, match=r"^model\.torso=nips: is for pictures.* vectors of 4 numbers; use mlp"):
        build.agent(settings("CartPole-v1", 8, "model.torso=nips"))


def test_weights_are_those_of_two_torsos_where_they_are_separate() -> None:
    shared, separate = (
        build.agent(settings("CartPole-v1", 8, f"model.separate={flag}", "model.memory=4"))
        for flag in ("false", "true")
    )
    cells = 4 * (4 * (8 + 4) + 4)
    torso = 8 * 4 + 8 + 8 * 8 + 8
    heads = 4 * 2 + 2 + 4 + 1
    assert (shared.layout.total, separate.layout.total) == (torso + cells + heads, 2 * (torso + cells) + heads)
    assert (shared.memory_size, separate.memory_size) == (8, 16)
    memory = np.arange(16, dtype=np.float32).reshape(1, 16)
    seen = np.ones((1, 4), np.float32)
    first = separate.act(seen, np.zeros((1, 1), np.float32), np.zeros(1, np.int64), memory)
    memory[:, 8:] = 0  # what the value remembers does not move the policy
    second = separate.act(seen, np.zeros((1, 1), np.float32), np.zeros(1, np.int64), memory)
    assert first.log_probabilities == second.log_probabilities
    assert first.values != second.values


def test_the_preset_for_continuous_actions_has_the_published_network() -> None:
    """Twice 200 ReLU units and 128 LSTM cells; a mean, one variance and a value, from the pendulum's four numbers."""
    config = loading.load("a3c-continuous")
    agent = build.agent(config)
    assert agent.layout.total == 2 * (4 * 200 + 200 + 4 * 128 * (200 + 128 + 1)) + 3 * (128 + 1)
    assert (config.actor.kind, config.algorithm.entropy, config.env.reward_clip) == ("episodes", 1e-4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("env.n_sim=2", "with actor.kind=episodes a rank has one simulator"),
        ("train.batch_size=50", "a rank's batch is one episode"),
        ("algorithm.name=ppo", "learns from whole segments; use lockstep"),
        ("env.normalise_rewards=true", "use allreduce or backup"),
        ("env.normalise_observations=true", "use allreduce or backup"),
    ],
)
def test_what_does_not_go_together_with_whole_episodes_and_hogwild_is_refused(change: str, message: str) -> None:
    more = ["comm.strategy=allreduce"] if "ppo" in change else []
    with pytest.raises(ConfigError, match=message):
        loading.load("a3c-continuous", [change, *more])
