"""Start real jobs: mpirun and python -m dba3c.train, as a user would."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from dba3c.job.launch import mpirun
from dba3c.job.single_host import single_host

ROOT = Path(__file__).parents[2]
TINY = (  # a job of a few seconds: small games, no evaluation
    "--preset=a2c",
    "--game=pong",
    "--env.n_sim=2",
    "--actor.n_steps=4",
    "--model.hidden=16",
    "--evaluate.games=0",
    "--checkpoint.every_updates=10",
)


class Result(NamedTuple):
    code: int
    output: str  # stdout and stderr together


PATIENCE = 300.0  # seconds that a job of a few seconds may take on a busy machine
STARTED: list[subprocess.Popen[str]] = []


def command(ranks: int, *words: str) -> list[str]:
    """The words that start python on `ranks` ranks; 0 ranks: without a launcher."""
    launcher = [mpirun(), "-np", str(ranks), "--bind-to", "none"] if ranks else []
    return [*launcher, sys.executable, *words]


def start(ranks: int, *words: str, **environment: str) -> subprocess.Popen[str]:
    return start_words(command(ranks, *words), **environment)


def start_words(words: list[str], **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env=single_host(os.environ, ranks=4) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    STARTED.append(process)
    return process


def end_all() -> None:
    """Kill what a test has started and, as it failed, not ended."""
    for process in STARTED:
        if process.poll() is None:
            process.kill()
    STARTED.clear()


def run(ranks: int, *words: str, seconds: float = PATIENCE, **environment: str) -> Result:
    """Run to the end; a job that outlives its time is killed and fails the test."""
    return run_words(command(ranks, *words), seconds, **environment)


def run_words(words: list[str], seconds: float = PATIENCE, **environment: str) -> Result:
    process = start_words(words, **environment)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        raise AssertionError(f"the job hangs:\n{output}") from None
    return Result(process.returncode, output)


def train(ranks: int, run_dir: Path, *options: str, **environment: str) -> Result:
    return run(ranks, "-m", "dba3c.train", *TINY, f"--run-dir={run_dir}", *options, **environment)


def other_version(folder: Path) -> None:
    """A copy of the package in `folder` that says that it is another version."""
    shutil.copytree(ROOT / "dba3c", folder / "dba3c")
    module = folder / "dba3c" / "__init__.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace('__version__ = "', '__version__ = "9.'), encoding="utf-8")


def children(pid: int) -> list[int]:
    """What any thread of a process has started; nothing if it is gone."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text(encoding="utf-8").split())
    return sorted(found)


def descendants(pid: int) -> list[int]:
    return [process for child in children(pid) for process in (child, *descendants(child))]


def ranks_of(pid: int) -> list[int]:
    """Processes of the ranks below a launcher, lowest first."""
    found = []
    for child in children(pid):
        with contextlib.suppress(OSError):  # the rank is gone
            if b"dba3c" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


def summary(run_dir: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    return content
