"""A sweep as a Slurm job array: the script, and its submission."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.run_files import write_atomically
from dba3c.sweeps.plan import Training

TRAIN = Path("slurm/train.sbatch")  # trains on the nodes, saves and goes back into the queue
SCRIPT = """#!/bin/bash
# Written by dba3c sweep: each task of the array is one training, by slurm/train.sbatch.
#SBATCH --job-name={name}
#SBATCH --array={tasks}
#SBATCH --ntasks={ranks}
#SBATCH --output={log}
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
#SBATCH --requeue

export PYTHON=${{PYTHON:-{python}}}
case $SLURM_ARRAY_TASK_ID in
{cases}
esac
exec bash {train} "$@"
"""


def script(trainings: list[Training], folder: Path, jobs: int | None) -> str:
    """Return the job script of the trainings that have not finished; ConfigError if there is nothing to do."""
    left = {number: training for number, training in enumerate(trainings) if not training.finished}
    if not left:
        raise ConfigError(f"{folder}: all {len(trainings)} trainings have finished; there is nothing to submit")
    cases = [f"{number}) {case(training)} ;;" for number, training in left.items()]
    return SCRIPT.format(
        name=folder.resolve().name,
        tasks=",".join(map(str, left)) + (f"%{jobs}" if jobs else ""),
        ranks=max(training.ranks for training in left.values()),
        log=shlex.quote(str(folder.resolve() / "logs" / "task-%a.log")),
        python=shlex.quote(sys.executable),
        cases="\n".join(cases),
        train=TRAIN,
    )


def case(training: Training) -> str:
    """Return the commands that name one training to slurm/train.sbatch."""
    words = shlex.join(training.settings)
    run_dir = shlex.quote(str(training.run_dir.resolve()))
    return f"export RUN_DIR={run_dir} PRESET={shlex.quote(training.request.preset)}; set -- {words}"


def submit(trainings: list[Training], folder: Path, jobs: int | None) -> str:
    """Write the script to the folder, submit it, and return what sbatch says."""
    if not TRAIN.is_file():
        raise ConfigError(f"--slurm: there is no {TRAIN} here; run this in a checkout of dba3c")
    if shutil.which("sbatch") is None:
        raise ConfigError("--slurm: sbatch was not found; run this where jobs are submitted, or leave --slurm out")
    text = script(trainings, folder, jobs)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    file = folder / "array.sbatch"
    write_atomically(file, text.encode())
    result = subprocess.run(["sbatch", str(file)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise ConfigError(f"--slurm: sbatch refused {file}: {result.stderr.strip() or result.stdout.strip()}")
    return f"{result.stdout.strip()}: {file}"
