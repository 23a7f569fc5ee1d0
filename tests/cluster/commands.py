"""What a user of the cluster types, and waits for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster import slurm
from tests.fakes import real_jobs, waiting

TRAIN = (sys.executable, "-m", "dba3c.train", *real_jobs.TINY)
EXACT = ("--checkpoint.restart_games=true", "--checkpoint.every_updates=5", "--train.total_steps=3200")
PATIENCE = 180.0


def srun(*words: str, mpi: str = "pmix", **variables: str) -> real_jobs.Result:
    result = slurm.command("srun", f"--mpi={mpi}", "-N4", "-n4", *words, seconds=PATIENCE, **variables)
    return real_jobs.Result(result.returncode, result.stdout + result.stderr)


def sbatch(script: str, log: Path, *arguments: str, **variables: str) -> str:
    """The number of the new job."""
    words = ("sbatch", "--parsable", f"--output={log}", f"slurm/{script}", *arguments)
    result = slurm.command(*words, **{"PYTHON": sys.executable} | variables)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def wait_for(what: Callable[[], bool], log: Path) -> None:
    def why() -> str:
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        return f"{slurm.command('scontrol', 'show', 'job').stdout}\n{text}"

    waiting.until(what, PATIENCE, why)


def ended(job: str) -> bool:
    time.sleep(0.5)  # squeue is a process of its own, on cores that the job needs
    return slurm.command("squeue", "--noheader", f"--jobs={job}", "--states=PD,R,CG,S,RH,RQ,RS").stdout.strip() == ""
