"""The state of a run on the disk, when several ranks believe that it is theirs to save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files import checkpoint
from dba3c.run_files.progress import Progress
from dba3c.training import build
from dba3c.training.state import State
from dba3c.types import Clock
from tests.fakes.agents import small


def state(run_dir: Path, seconds: float) -> State:
    """Of one rank; each has its own clock, so what they save of the same update differs."""
    config = small()
    agent = build.agent(config)
    found = State(config, agent, build.optimizer(config, agent), run_dir)
    found.progress.seconds = seconds
    return found


def test_ranks_that_lost_contact_leave_each_others_checkpoints_alone(tmp_path: Path) -> None:
    """Each would take the other's for one that is out of date: nothing would be left if they tidied up in turn."""
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    here.save()
    there.save_now(equal_weights=True)
    here.save_now(equal_weights=True)
    left = [checkpoint.load(path).progress["seconds"] for path in checkpoint.newest_first(tmp_path / "checkpoints")]
    assert sorted(left) == [1.0, 2.0]


def test_the_next_regular_save_tidies_up(tmp_path: Path) -> None:
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    there.save_now(equal_weights=True)
    here.save()
    (left,) = checkpoint.newest_first(tmp_path / "checkpoints")
    assert checkpoint.load(left).progress["seconds"] == 1.0


def test_an_emergency_save_says_what_became_of_it(tmp_path: Path) -> None:
    here = state(tmp_path, 1.0)
    assert here.save_now(equal_weights=True) == "saved update 0"
    assert here.save_now(equal_weights=False) == "the last regular save counts"


def test_a_full_disk_is_reported_and_nothing_else_happens(tmp_path: Path) -> None:
    def full(_update: int) -> None:
        raise OSError("no space left on device")

    config = small()
    agent = build.agent(config)
    here = State(config, agent, build.optimizer(config, agent), tmp_path, before_saving=full)
    assert here.save_now(equal_weights=True) == "could not save: no space left on device"
    with pytest.raises(OSError, match="no space left"):
        here.save()
    assert not checkpoint.newest_first(tmp_path / "checkpoints")


def test_runs_that_must_resume_exactly_are_saved_at_regular_times_only(tmp_path: Path) -> None:
    config = small("checkpoint.restart_games=true")
    agent = build.agent(config)
    here = State(config, agent, build.optimizer(config, agent), tmp_path)
    assert here.save_now(equal_weights=True) == "the last regular save counts"
    assert not (tmp_path / "checkpoints").exists()


def test_weights_optimizer_progress_and_algorithm_are_restored(tmp_path: Path) -> None:
    ppo = small("algorithm.name=ppo", "actor.n_steps=8", "train.total_steps=1000")
    agent = build.agent(ppo)
    first = State(ppo, agent, build.optimizer(ppo, agent), tmp_path)
    first.progress = Progress(updates=3, steps=240, skipped=1, evaluation_score=2.0, evaluation_games=5)
    agent.algorithm.restore({"advantage_scale": np.array(0.25)})
    first.save()
    other = build.agent(ppo)
    second = State(ppo, other, build.optimizer(ppo, other), tmp_path)
    notes: list[str] = []
    saved = second.load(notes)
    assert saved is not None
    second.restore(saved)
    assert second.progress == first.progress
    assert other.clock == Clock(3, 240, 1000)
    assert float(other.algorithm.state()["advantage_scale"]) == 0.25
    assert other.weights.numpy().tobytes() == agent.weights.numpy().tobytes()
    assert notes == [f"resuming {tmp_path} at update 3, step 240, with new episodes"]


def test_a_checkpoint_that_does_not_fit_the_agent_is_passed_over(tmp_path: Path) -> None:
    here = state(tmp_path, 1.0)
    here.save()
    good = here.snapshot()
    for updates, change in ((1, {"weights": good.weights[:-1]}), (2, {"optimizer": {"steps": np.array(2)}})):
        optimizer = {name: slot[:-1] if slot.ndim else slot for name, slot in good.optimizer.items()}
        crafted = good._replace(progress=good.progress | {"updates": updates}, **{"optimizer": optimizer} | change)
        checkpoint.add(tmp_path / "checkpoints", crafted)
    notes: list[str] = []
    saved = state(tmp_path, 1.0).load(notes)
    assert saved is not None
    assert saved.progress["updates"] == 0
    assert [("does not fit this agent" in note) for note in notes] == [True, True, False]


def test_a_trained_agent_with_too_few_weights_is_refused(tmp_path: Path) -> None:
    saved = state(tmp_path, 1.0).snapshot()
    assert build.trained(saved).version == 0
    with pytest.raises(ConfigError, match=r"the checkpoint has .* weights, but the network .*; choose another"):
        build.trained(saved._replace(weights=saved.weights[:-1]))
