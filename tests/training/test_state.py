"""The state of a run on the disk, when several ranks believe that it is theirs to save."""

from __future__ import annotations

from pathlib import Path

from dba3c.run_files import checkpoint
from dba3c.training import build
from dba3c.training.state import State
from tests.fakes.agents import small


def state(run_dir: Path, seconds: float) -> State:
    """Of one rank; each has its own clock, so what they save of the same update differs."""
    config = small()
    agent = build.agent(config)
    found = State(config, agent, build.optimizer(config, agent), run_dir)
    found.progress.seconds = seconds
    return found


def test_ranks_that_lost_sight_of_each_other_leave_each_others_checkpoints_alone(tmp_path: Path) -> None:
    """Each would take the other's for one that is out of date: nothing would be left if they tidied up in turn."""
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    here.save()
    there.save_at_once()
    here.save_at_once()
    left = [checkpoint.load(path).progress["seconds"] for path in checkpoint.newest_first(tmp_path / "checkpoints")]
    assert sorted(left) == [1.0, 2.0]


def test_the_next_regular_save_tidies_up(tmp_path: Path) -> None:
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    there.save_at_once()
    here.save()
    (left,) = checkpoint.newest_first(tmp_path / "checkpoints")
    assert checkpoint.load(left).progress["seconds"] == 1.0
