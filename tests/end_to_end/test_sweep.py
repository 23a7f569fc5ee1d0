"""A sweep of real trainings: stopped, killed, resumed, and with one that fails."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_STOPPED
from dba3c.run_files import checkpoint
from dba3c.run_files.directory import exit_code, locked_here
from tests.fakes import real_jobs, waiting

PLAN = """
games: [breakout, pong]
seeds: 2
preset: a2c
common:
  env.n_sim: 2
  actor.n_steps: 4
  model.hidden: 16
  evaluate.games: 0
  train.total_steps: 1600
  checkpoint.every_updates: 10
  checkpoint.restart_games: true
"""
PATIENCE = 300.0
NAMES = ("breakout-0", "breakout-1", "pong-0", "pong-1")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN, encoding="utf-8")
    return file


def start(plan: Path, *options: str) -> subprocess.Popen[str]:
    return real_jobs.start(0, "-m", "dba3c.sweep", str(plan), f"--out={plan.parent / 'runs'}", "--jobs=2", *options)


def ended(sweep: subprocess.Popen[str], number: signal.Signals | None = None) -> real_jobs.Result:
    if number is not None:
        sweep.send_signal(number)
    output, _ = sweep.communicate(timeout=PATIENCE)
    return real_jobs.Result(sweep.returncode, output)


def saved(plan: Path, name: str) -> int:
    """The update of a run's newest checkpoint; 0 if there is none."""
    files = checkpoint.newest_first(plan.parent / "runs" / name / "checkpoints")
    return checkpoint.update_of(files[0]) if files else 0


def test_a_sweep_that_is_stopped_and_killed_ends_as_if_it_had_not_been(plan: Path) -> None:
    runs = plan.parent / "runs"
    sweep = start(plan)
    waiting.until(lambda: saved(plan, "breakout-0") > 0 and saved(plan, "breakout-1") > 0, PATIENCE)
    stopped = ended(sweep, signal.SIGINT)
    assert stopped.code == EXIT_STOPPED, stopped.output
    assert "breakout-0: stopped" in stopped.output
    assert stopped.output.endswith("2 stopped, 2 waiting\n")
    assert [exit_code(runs / name) for name in NAMES[:2]] == [EXIT_STOPPED] * 2

    before = saved(plan, "breakout-0")
    sweep = start(plan, "--nice=1")
    waiting.until(lambda: saved(plan, "breakout-0") > before, PATIENCE)
    assert ended(sweep, signal.SIGKILL).code == -signal.SIGKILL
    result = ended(start(plan))  # while the trainings of the killed one may still be saving
    assert result.code == 0, result.output
    assert result.output.endswith("4 finished\n")
    assert not any(locked_here(runs / name) for name in NAMES)
    assert "resuming" in (runs / "logs" / "breakout-0.log").read_text(encoding="utf-8")

    hashes = {name: real_jobs.summary(runs / name)["weight_hash"] for name in NAMES}
    assert len(set(hashes.values())) == 4
    again = ended(start(plan))
    assert (again.code, again.output) == (0, "4 trainings, 4 of them finished before\n4 finished\n")
    plan.write_text(PLAN.replace("[breakout, pong]", "breakout"), encoding="utf-8")
    unbroken = ended(start(plan, f"--out={plan.parent / 'unbroken'}"))  # with as many cores: threads round differently
    assert unbroken.code == 0, unbroken.output
    for name in NAMES[:2]:
        assert real_jobs.summary(plan.parent / "unbroken" / name)["weight_hash"] == hashes[name]


def test_a_training_that_fails_is_reported_at_the_end_and_the_others_go_on(plan: Path) -> None:
    plan.write_text(PLAN.replace("[breakout, pong]", "pong").replace("1600", "80"), encoding="utf-8")
    (plan.parent / "runs").mkdir()
    (plan.parent / "runs" / "pong-0").touch()
    result = ended(start(plan))
    assert result.code == 1, result.output
    log = plan.parent / "runs" / "logs" / "pong-0.log"
    *_, last, count = result.output.splitlines()
    assert last.startswith("pong-0: exit code 2: dba3c: --run-dir=")
    assert last.endswith(f"choose another directory; {log}")
    assert count == "1 finished, 1 failed"
    assert real_jobs.summary(plan.parent / "runs" / "pong-1")["steps"] == 80
