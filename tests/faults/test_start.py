"""Faults at the start: refused with one message from the whole job, the documented exit code, nothing changed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_NOT_SAVED
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import HOST


@pytest.mark.fault(12, "bad configuration")
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--env.nsim=4", "env.n_sim"),
        ("--env.n_sim=many", "integer"),
        ("--optimizer.learning_rate=-1", "greater than 0"),
        ("--train.batch_size=7", "train.batch_size=auto"),
        ("--game=brekout", "breakout"),
        ("--preset=fst", "fast"),
        ("--train.total_steps=5", "raise it"),
        ("breakout", "not understood"),  # a game is the first word or none
    ],
)
def test_bad_input_is_reported_once_and_leaves_nothing(
    tmp_path: Path, happened: Happened, option: str, words: str
) -> None:
    result = real_jobs.train(4, tmp_path / "run", option)
    assert result.code == EXIT_BAD_INPUT, result.output
    assert result.output.count("dba3c:") == 1, result.output
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()
    happened(f"{option}: one message, code 2, no file created")


def test_a_run_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = real_jobs.train(2, tmp_path / "file" / "run")
    assert result.code == EXIT_BAD_INPUT, result.output
    assert "cannot be written" in result.output
    assert result.output.count("dba3c:") == 1


@pytest.mark.fault(14, "four tasks, each alone in MPI")
@pytest.mark.parametrize("task", ["0", "3"])
def test_tasks_that_do_not_find_each_other_are_refused(tmp_path: Path, happened: Happened, task: str) -> None:
    """What srun does with the wrong --mpi: four tasks, each alone in its world; only the first speaks."""
    result = real_jobs.run(
        0, "-m", "dba3c.train", f"--run-dir={tmp_path / 'run'}", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID=task
    )
    assert result.code == EXIT_BAD_INPUT
    assert result.output.count("srun --mpi=pmix") == (task == "0")
    assert not (tmp_path / "run").exists()
    happened(f"task {task}: refused{', with the remedy' * (task == '0')}, code 2")


@pytest.mark.fault(9, "disk full to the end")
def test_a_full_disk_does_not_end_the_training_but_the_last_save_must_succeed(
    tmp_path: Path, happened: Happened
) -> None:
    """No file may grow beyond 300 kB, as a checkpoint does."""
    words = real_jobs.command(
        2, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}", "--train.total_steps=400"
    )
    limited = ["sh", "-c", 'ulimit -f 600; exec "$@"', "sh", *words]
    result = real_jobs.run_words(limited, OMPI_MCA_btl="self,tcp")  # which makes no files
    assert result.code == EXIT_NOT_SAVED, result.output
    assert result.output.count("could not save update") == 3  # 10, 20 and the last, 25
    assert "File too large" in result.output
    assert f"rank 0 on {HOST} could not save the final state, after 25 updates" in result.output
    assert real_jobs.summary(tmp_path)["updates"] == 25
    assert not list((tmp_path / "checkpoints").iterdir())
    happened("reported at every save; training continues to its end, code 4", lost="the run: no save succeeded")


@pytest.mark.fault(24, "two jobs on one run directory")
def test_a_second_job_on_a_run_directory_is_refused_and_names_the_owner(tmp_path: Path, happened: Happened) -> None:
    first = real_jobs.start(2, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}")
    try:
        waiting.until((tmp_path / "checkpoints").exists)
        owner = (tmp_path / "lock").read_text(encoding="utf-8").split()[1]
        second = real_jobs.train(2, tmp_path)
        assert second.code == EXIT_BAD_INPUT, second.output
        assert second.output.count("dba3c:") == 1
        assert f"process {owner} on" in second.output
        os.kill(int(owner), signal.SIGKILL)
    finally:
        first.communicate(timeout=180)
    result = real_jobs.train(2, tmp_path, "--train.total_steps=16")  # the lock of a dead job does not hold up the next
    assert result.code == 0, result.output
    happened("the second is refused, the owner named; the lock of a dead owner does not count")
