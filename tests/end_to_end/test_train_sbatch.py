"""slurm/train.sbatch as a shell script: when it requeues; tests/cluster runs it under a real Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs, waiting


class Job(NamedTuple):
    """The script with another launcher, which runs a shell script instead of a training, and what it left."""

    folder: Path

    def start(self, training: str, **more: str) -> subprocess.Popen[str]:
        self.write("launch", f'cd "{self.folder}"; mkdir -p run\n{training}')
        self.write("scontrol", f'echo "$@" >> {self.folder}/requeued')
        self.write("sleep", "")  # until Slurm ends the job
        variables = {
            "PATH": f"{self.folder}:{os.environ['PATH']}", "LAUNCH": str(self.folder / "launch"),
            "RUN_DIR": str(self.folder / "run"), "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "name",
        } | more  # fmt: skip
        script = real_jobs.ROOT / "slurm" / "train.sbatch"
        return subprocess.Popen(["bash", script], env=os.environ | variables, stdout=subprocess.PIPE, text=True)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (self.folder / name).chmod(0o755)

    @property
    def requeued(self) -> bool:
        return (self.folder / "requeued").is_file()


@pytest.mark.parametrize(
    ("training", "code", "requeued"),
    [
        ("exit 75", 75, True),
        ("echo 75 > run/exit_code; exit 1", 75, True),  # mpirun got the signal
        ("echo 1 > run/exit_code; exit 1", 1, False),  # a rank failed
        ("exit 1", 1, False),
        ("exit 2", 2, False),
        ("exit 5", 5, True),
        ("exit 137", 137, True),
        ("echo 75 > run/exit_code; exit 0", 0, False),
    ],
)
def test_a_job_is_requeued_if_it_can_be_resumed(tmp_path: Path, training: str, code: int, requeued: bool) -> None:
    job = Job(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "exit_code").write_text("75", encoding="utf-8")  # of the job before
    process = job.start(training)
    process.communicate(timeout=20)
    assert (process.returncode, job.requeued) == (code, requeued)


def starts(folder: Path, training: str) -> int:
    """How often Slurm starts the job until it is not requeued any more."""
    job = Job(folder)
    for restart in range(20):
        (folder / "requeued").unlink(missing_ok=True)
        job.start(training, SLURM_RESTART_COUNT=str(restart), MAX_FRUITLESS="3").communicate(timeout=20)
        if not job.requeued:
            return restart + 1
    return 20


@pytest.mark.fault(23, "a job that fails again and again")
def test_a_job_that_makes_no_progress_is_given_up(tmp_path: Path, happened: Happened) -> None:
    assert starts(tmp_path, "exit 137") == 3
    save = "mkdir -p run/checkpoints; touch run/checkpoints/update-$SLURM_RESTART_COUNT.npz"
    assert starts(tmp_path, f"[ $SLURM_RESTART_COUNT -gt 4 ] || {{ {save}; }}; exit 5") == 5 + 3
    happened("train.sbatch: not requeued after MAX_FRUITLESS (5) starts without a new checkpoint")


def test_the_count_of_another_job_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "fruitless_starts").write_text("a[$(touch run/executed)]\n9999\n", encoding="utf-8")
    job = Job(tmp_path)
    job.start("exit 5").communicate(timeout=20)  # not a restart
    assert job.requeued
    (tmp_path / "run" / "fruitless_starts").write_text("a[$(touch run/executed)]\n", encoding="utf-8")
    job.start("exit 5", SLURM_RESTART_COUNT="1").communicate(timeout=20)
    assert not (tmp_path / "run" / "executed").exists()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_the_script_reaches_the_training(tmp_path: Path, number: signal.Signals) -> None:
    """The launcher gets SIGUSR1, which mpirun passes on without killing its ranks."""
    job = Job(tmp_path)
    process = job.start("trap 'touch run/saved; exit 75' USR1; touch run/ready; while :; do read -rt 0.1 < <(:); done")
    waiting.until((tmp_path / "run" / "ready").is_file, 20)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert (process.returncode, job.requeued) == (75, True)
    assert (tmp_path / "run" / "saved").is_file()
