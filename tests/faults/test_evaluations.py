"""Evaluations on several ranks: one that stops does not hang the others."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import HOST

LIMIT = 8.0  # seconds, of the start and of silence
KILLED = 137  # by the guard over MPI's own start


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("run")
    trained = real_jobs.train(0, run_dir, f"--comm.silence_seconds={LIMIT:g}", "--train.total_steps=160")
    assert trained.code == 0, trained.output
    return run_dir


@pytest.mark.parametrize("playing", [False, True])
@pytest.mark.fault(52, "SIGSTOP of a rank of dba3c evaluate, for ever")
def test_a_rank_that_stops_ends_the_evaluation(agent: Path, happened: Happened, playing: bool) -> None:
    process = real_jobs.start(
        2, "-m", "dba3c.evaluate", str(agent), "--games=400", DBA3C_START_SECONDS=f"{LIMIT:g}", PYTHONUNBUFFERED="1"
    )
    assert process.stdout is not None
    waiting.until(lambda: len(real_jobs.ranks_of(process.pid)) == 2)
    if playing:
        while "loading TensorFlow" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(6.0)
    os.kill(real_jobs.ranks_of(process.pid)[1], signal.SIGSTOP)
    since = time.monotonic()
    output, _ = process.communicate(timeout=6 * LIMIT)
    assert process.returncode == EXIT_LOST if playing else process.returncode in (EXIT_LOST, KILLED), output
    assert f"rank 1 on {HOST} is dead, stopped or cut off" in output or not playing, output
    assert "stopped" in output, output
    when = "while it plays: named" if playing else "while it starts: reported"
    happened(f"{when} after a limit of {LIMIT:g} s, code {process.returncode}", time.monotonic() - since)
