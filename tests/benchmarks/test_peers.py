"""Other systems, in turn with ours."""

from __future__ import annotations

import ast
import json
import os
from argparse import Namespace
from pathlib import Path

import pytest

from dba3c.benchmarks import peers
from dba3c.benchmarks.launching import Bar, show
from dba3c.benchmarks.peers import control
from dba3c.config import loading
from dba3c.config.messages import ConfigError


def test_ratio_is_of_medians() -> None:
    rows = peers.rows_of({"dba3c": [90.0, 300.0, 100.0], "other": [50.0, 40.0, 60.0]})
    assert [row["ratio"] for row in rows] == [1.0, 2.0]


def test_peers_take_turns_with_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a noisy minute hits all."""
    turns: list[str] = []
    monkeypatch.setattr(peers, "environment", lambda peer: turns.append(f"install {peer.script}"))
    monkeypatch.setattr(peers, "our_pace", lambda contest, *_: turns.append(contest.preset) or 300.0)
    monkeypatch.setattr(peers, "peer_pace", lambda peer, *_: turns.append(peer.name) or 100.0)
    everything = Namespace(game="pong", seconds=1.0, repeats=2, recipes=["a2c", "ppo"])
    result = peers.measure(everything, Bar(disable=True))
    assert turns == [
        *("install sb3_a2c.py", "install torch_envpool.py", "install torch_envpool.py"),
        *2 * ("a2c", "stable-baselines3 A2C", "torch.compile + EnvPool, one pass"),
        *2 * ("ppo", "torch.compile + EnvPool, PPO"),
    ]
    assert set(result["ratio"].values()) == {3.0}
    show(peers.table(result))
    output = capsys.readouterr().out
    assert output.count("training pong") == 2
    assert output.count("3.00 ×") == 3


def test_recipes_are_named_with_commas_and_must_be_known() -> None:
    assert peers.recipes("ppo,a2c") == ["ppo", "a2c"]
    with pytest.raises(ConfigError, match=r"^--recipes=pp: is none of a2c, ppo"):
        peers.recipes("pp")


def test_peers_train_with_the_network_and_the_segments_of_our_presets() -> None:
    """Their scripts run in other environments, so they are read, not imported."""
    script = ast.parse((peers.SCRIPTS / "torch_envpool.py").read_text(encoding="utf-8"))
    (table,) = (
        node.value for node in script.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RECIPES"
    )
    assert isinstance(table, ast.Dict)
    for name, call in zip(table.keys, table.values, strict=True):
        assert isinstance(call, ast.Call)
        contest = peers.CONTESTS[ast.literal_eval(name)]
        config = loading.load(contest.preset)
        passes = (config.algorithm.passes, config.algorithm.minibatches) if config.several_passes else (1, 1)
        ours = [contest.n_sim, contest.n_steps, config.model.hidden, config.model.standardise, *passes]
        assert [ast.literal_eval(argument) for argument in call.args[:6]] == ours


@pytest.mark.parametrize("value", [None, "", "here", "./here"])
@pytest.mark.fault(48, "XDG_CACHE_HOME is empty or relative", "ignored: nothing of the current folder is run")
def test_peers_are_never_installed_or_run_in_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    """The XDG specification: an empty or a relative path counts as none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert peers.cache() == tmp_path / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert peers.cache() == tmp_path / "other"


def test_control_tasks_are_solved_in_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each system gets one core, and writes what it came to."""
    commands: list[list[str]] = []

    def call(command: list[str]) -> None:
        commands.append(command)
        assert len(os.sched_getaffinity(0)) == 1
        ours = {"evaluation_score": 490.0, "evaluation_games": 50, "steps": 10240}
        if "dba3c.train" in command:
            (tmp_path / "CartPole-v1").mkdir()
            (tmp_path / "CartPole-v1" / "summary.json").write_text(json.dumps(ours), encoding="utf-8")
        else:
            theirs = {"score": 480.0, "episodes": 50, "steps": 20480}
            Path(command[-1]).write_text(json.dumps(theirs), encoding="utf-8")

    cores = os.sched_getaffinity(0)
    monkeypatch.setattr(peers, "environment", lambda _peer: "their/python")
    monkeypatch.setattr(peers, "call", call)
    result = control.measure(Namespace(tasks=["CartPole-v1"], runs=tmp_path), Bar(disable=True))
    assert os.sched_getaffinity(0) == cores
    assert commands[1][:-1] == ["their/python", str(peers.SCRIPTS / "sb3_ppo.py"), "CartPole-v1", "475.0"]
    assert [(row["system"], row["score"], row["steps"]) for row in result["rows"]] == [
        ("dba3c", 490.0, 10240),
        ("stable-baselines3 PPO", 480.0, 20480),
    ]
    show(control.table(result))
    assert "490.0 (50)" in capsys.readouterr().out


def test_tasks_are_named_with_commas_and_must_be_known() -> None:
    assert control.tasks("Acrobot-v1,CartPole-v1") == ["Acrobot-v1", "CartPole-v1"]
    with pytest.raises(ConfigError, match=r"^--tasks=CartPol-v1: .* did you mean CartPole-v1"):
        control.tasks("CartPol-v1")
    assert set(control.TASKS) <= set(loading.load().targets)
