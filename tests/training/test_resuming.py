"""A run that is broken off and resumed equals an unbroken one: Q-learning and policies that remember, on Catch."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_OK
from dba3c.run_files import checkpoint, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.training.injected import Faults
from dba3c.training.run import Run
from tests.fakes.worlds import world

Q = (  # the target network is copied, and ε falls, before and after the save in the middle
    "algorithm.name=q", "actor.carry=true", "algorithm.target_every_steps=50", "algorithm.epsilons=[0.1, 0.5]",
    "algorithm.epsilon_steps=160",
)  # fmt: skip
LSTM = ("model.memory=8", "env.blind=true")
PASSES = ("actor.n_steps=8", "algorithm.passes=2", "algorithm.minibatches=2")
KINDS = {
    "one-step-sarsa": (*Q, "algorithm.returns=sarsa"),
    "q-lambda": (*Q, *PASSES, "algorithm.returns=lambda"),
    "a3c-lstm": LSTM,
}
REPLAY = (
    "algorithm.name=q", "algorithm.returns=one_step", "algorithm.target_every_updates=7",
    "algorithm.epsilon_updates=40", "algorithm.outlier_deviations=6", "train.batch_size=8",
    "experience.capacity_steps=200", "experience.warm_up_steps=64", "experience.steps_per_update=4",
)  # fmt: skip


def settings(*overrides: str) -> Config:
    small = ("env.n_sim=4", "model.hidden=8", "actor.n_steps=2", "evaluate.games=0", "train.total_steps=192")
    return loading.load("catch", [*small, *overrides])


def run(run_dir: Path, config: Config) -> Checkpoint:
    run_dir.mkdir(exist_ok=True)
    assert Run(world(), config, run_dir, Faults([], 0)).train() == EXIT_OK
    return trained_agents.find(run_dir)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_equals_an_unbroken_one_bit_for_bit(tmp_path: Path, kind: str) -> None:
    """The resumed one has lost what came after its save in the middle, as if it had been killed then."""
    config = settings("checkpoint.every_updates=8", "checkpoint.restart_games=true", *KINDS[kind])
    unbroken = run(tmp_path, config)
    saves = checkpoint.newest_first(tmp_path / "checkpoints")
    assert len(saves) > 1
    for save in saves[:-1]:
        save.unlink()
    middle = checkpoint.update_of(saves[-1])
    assert 0 < middle < unbroken.progress["updates"]
    resumed = run(tmp_path, config)
    assert bits(resumed) == bits(unbroken)
    assert ("algorithm target" in bits(resumed)) == (kind != "a3c-lstm")


def bits(saved: Checkpoint) -> dict[str, bytes]:
    """Everything that later updates depend on."""
    named = {"weights": saved.weights}
    named |= {f"optimizer {name}": array for name, array in saved.optimizer.items()}
    named |= {f"algorithm {name}": array for name, array in saved.algorithm.items()}
    return {name: array.tobytes() for name, array in named.items()}


def test_a_resumed_run_fills_its_replay_memory_again_and_has_lost_nothing_else(tmp_path: Path) -> None:
    before = run(tmp_path, settings(*REPLAY))
    assert before.progress["empty"] == 7  # 64 steps, 8 at a time, and the last of them is learned from
    longer = settings(*REPLAY, "train.total_steps=400")
    resumed = Run(world(), longer, tmp_path, Faults([], 0))
    assert bits(resumed._state.snapshot()) == bits(before)
    assert before.algorithm["outliers"][0, 0] > 0
    assert resumed.train() == EXIT_OK
    after = trained_agents.find(tmp_path).progress
    assert (after["steps"], after["empty"]) == (400, 14)
