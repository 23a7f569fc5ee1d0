"""Bad input and broken ranks: one message, the documented exit code, nobody left hanging, nothing lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from dba3c import checkpoint
from dba3c.launch import EXIT_BAD_INPUT, EXIT_NOT_FINITE, EXIT_NOT_SAVED
from tests import jobs


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
        ("breakout", "not understood"),
    ],
)
def test_bad_input_is_told_once(tmp_path: Path, option: str, words: str) -> None:
    result = jobs.train(2, tmp_path / "run", option)
    assert result.code == EXIT_BAD_INPUT, result.output
    assert result.output.count("dba3c:") == 1, result.output
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()


def test_a_run_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = jobs.train(2, tmp_path / "file" / "run")
    assert result.code == EXIT_BAD_INPUT, result.output
    assert "cannot be written" in result.output
    assert result.output.count("dba3c:") == 1


@pytest.mark.parametrize("task", ["0", "3"])
def test_tasks_that_do_not_find_each_other_are_refused(tmp_path: Path, task: str) -> None:
    """What srun does with the wrong --mpi: four tasks, each alone in its world; only the first speaks."""
    result = jobs.run(
        0, "-m", "dba3c.train", f"--run-dir={tmp_path / 'run'}", SLURM_STEP_NUM_TASKS="4", SLURM_PROCID=task
    )
    assert result.code == EXIT_BAD_INPUT
    assert result.output.count("srun --mpi=pmix") == (task == "0")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_does_not_end_the_training_but_the_last_save_must_succeed(tmp_path: Path) -> None:
    """No file may grow beyond 300 kB, as a checkpoint does."""
    words = jobs.command(2, "-m", "dba3c.train", *jobs.TINY, f"--run-dir={tmp_path}", "--train.total_steps=400")
    result = jobs.run_words(["sh", "-c", 'ulimit -f 600; exec "$@"', "sh", *words])
    assert result.code == EXIT_NOT_SAVED, result.output
    assert result.output.count("could not save update") == 3  # 10, 20 and the last, 25
    assert "File too large" in result.output
    assert "the last save failed" in result.output
    assert jobs.summary(tmp_path)["updates"] == 25
    assert not list((tmp_path / "checkpoints").iterdir())
    assert jobs.train(2, tmp_path, "--train.total_steps=400").code == 0


def test_two_jobs_on_one_run_directory(tmp_path: Path) -> None:
    first = jobs.start(2, "-m", "dba3c.train", *jobs.TINY, f"--run-dir={tmp_path}")
    try:
        jobs.wait_for((tmp_path / "checkpoints").exists)
        owner = (tmp_path / "lock").read_text(encoding="utf-8").split()[1]
        second = jobs.train(2, tmp_path)
        assert second.code == EXIT_BAD_INPUT, second.output
        assert second.output.count("dba3c:") == 1
        assert f"process {owner} on" in second.output
        os.kill(int(owner), signal.SIGKILL)
    finally:
        first.communicate(timeout=60)
    result = jobs.train(2, tmp_path, "--train.total_steps=16")  # the lock of a dead job holds nobody up
    assert result.code == 0, result.output


def test_a_run_directory_of_another_game_is_refused(tmp_path: Path) -> None:
    assert jobs.train(1, tmp_path, "--train.total_steps=16").code == 0
    result = jobs.train(2, tmp_path, "--train.total_steps=16", "--game=breakout")
    assert result.code == EXIT_BAD_INPUT, result.output
    assert "env.game='breakout'" in result.output
    assert result.output.count("dba3c:") == 1


def faulty(fault: str, run_dir: Path, *options: str) -> jobs.Result:
    return jobs.run(3, "-m", "tests.faulty_train", fault, *jobs.TINY, f"--run-dir={run_dir}", *options, seconds=90)


def test_an_exception_on_one_rank_ends_all(tmp_path: Path) -> None:
    result = faulty("exception", tmp_path)
    assert result.code not in (0, EXIT_BAD_INPUT)
    assert "rank 2 on" in result.output
    assert "the emulator is on fire" in result.output


def test_one_nan_skips_one_update_everywhere(tmp_path: Path) -> None:
    result = faulty("one-nan", tmp_path, "--train.total_steps=480")
    assert result.code == 0, result.output
    assert jobs.summary(tmp_path)["skipped"] == 1


def test_nan_for_ever_stops_with_good_weights(tmp_path: Path) -> None:
    result = faulty("always-nan", tmp_path)
    assert result.code == EXIT_NOT_FINITE, result.output
    saved = checkpoint.load(checkpoint.newest_first(tmp_path / "checkpoints")[0])
    assert np.isfinite(saved.weights).all()
    assert saved.progress["skipped"] == 5


def test_weights_that_drift_apart_stop_the_job(tmp_path: Path) -> None:
    result = faulty("drift", tmp_path, "--comm.check_every_updates=15")
    assert result.code not in (0, EXIT_BAD_INPUT)
    assert "after update 15 the weights of ranks [2] differ" in result.output
