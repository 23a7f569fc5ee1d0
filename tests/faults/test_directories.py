"""Run directories that somebody removes while a job trains there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_NOT_SAVED, EXIT_STOPPED
from dba3c.run_files.directory import prepare_directory
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import loadable, newest_update

CREATED_AGAIN = "was removed: it was created again, and training continues"


def start(run_dir: Path) -> subprocess.Popen[str]:
    process = real_jobs.start(2, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={run_dir}")
    waiting.until(lambda: newest_update(run_dir) >= 10)
    return process


@pytest.mark.fault(41, "rm -rf of the run directory while training")
def test_a_directory_that_was_removed_is_created_again_and_no_other_job_can_train_there(
    tmp_path: Path, happened: Happened
) -> None:
    run_dir = tmp_path / "run"
    process = start(run_dir)
    shutil.rmtree(run_dir, ignore_errors=True)  # a save may come in between
    shutil.rmtree(run_dir, ignore_errors=True)
    since = time.monotonic()
    waiting.until(lambda: (run_dir / "lock").is_file() and newest_update(run_dir) > 0)
    took = time.monotonic() - since
    second = real_jobs.train(2, run_dir)
    assert second.code == EXIT_BAD_INPUT, second.output
    assert "is training there" in second.output
    os.kill(real_jobs.ranks_of(process.pid)[0], signal.SIGTERM)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == EXIT_STOPPED, output
    assert output.count(CREATED_AGAIN) >= 1, output
    assert loadable(run_dir) == real_jobs.summary(run_dir)["updates"]
    assert {"config.yaml", "metrics.csv", "log.txt"} <= {path.name for path in run_dir.iterdir()}
    assert not list(run_dir.rglob("*.abandoned"))
    happened(
        "created again and locked within 5 s, reported in one line; a second job is refused", took, "older metrics"
    )


@pytest.mark.fault(41, "rm -rf of the run directory, and another job starts there")
def test_a_job_whose_directory_was_taken_ends_and_leaves_it_alone(tmp_path: Path, happened: Happened) -> None:
    run_dir, other = tmp_path / "run", tmp_path / "other"
    with prepare_directory(other):
        process = real_jobs.start(
            2, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={run_dir}", "--checkpoint.every_updates=1000000"
        )
        waiting.until(lambda: any(run_dir.glob("events.out.*")))  # the last file that it opens
        run_dir.rename(tmp_path / "moved")
        other.rename(run_dir)
        since = time.monotonic()
        output, _ = process.communicate(timeout=180)
    took = time.monotonic() - since
    assert process.returncode == EXIT_NOT_SAVED, output
    assert output.count("another job has begun to train there: this one ends") == 1, output
    assert {path.name for path in run_dir.iterdir()} <= {"lock", "log.txt"}
    happened("reported in one line, code 4; the other job's files are untouched", took, "updates since the last save")
