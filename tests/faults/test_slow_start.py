"""Ranks that are stopped, or asked to stop, before training begins."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST, EXIT_STOPPED
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting

TRIES = int(os.environ.get("TRIES", "4"))
LIMIT = 6.0  # seconds
KILLED = 137  # by the guard over MPI's own start


def wait_for_ranks(launcher: int) -> list[int]:
    waiting.until(lambda: len(real_jobs.ranks_of(launcher)) == 2)
    return real_jobs.ranks_of(launcher)


@pytest.mark.parametrize("number", range(TRIES))
@pytest.mark.fault(31, "SIGSTOP for ever while the job starts")
def test_a_rank_that_is_stopped_while_it_starts_is_noticed(tmp_path: Path, happened: Happened, number: int) -> None:
    """At a random moment of the imports, of MPI's start, of the handshake or of the first update."""
    words = ("-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}", f"--comm.silence_seconds={LIMIT:g}")
    process = real_jobs.start(2, *words, DBA3C_START_SECONDS=f"{LIMIT:g}")
    ranks = wait_for_ranks(process.pid)
    draw = random.Random(number)
    time.sleep(draw.uniform(0.0, 6.0))
    victim = draw.choice(ranks)
    os.kill(victim, signal.SIGSTOP)
    since = time.monotonic()
    try:
        output, _ = process.communicate(timeout=6 * LIMIT)
    finally:
        os.kill(victim, signal.SIGKILL) if Path(f"/proc/{victim}").exists() else None
        process.kill()
    assert process.returncode in (EXIT_LOST, KILLED), output
    assert "stopped" in output, output
    took = time.monotonic() - since
    happened(f"at {TRIES} random moments, with a limit of {LIMIT:g} s: named, code 5 or 137", took)


@pytest.mark.parametrize("ranks", [(1,), (0, 1)])
@pytest.mark.fault(32, "SIGINT while the job starts")
def test_a_signal_while_the_job_starts_ends_it_with_one_line(
    tmp_path: Path, happened: Happened, ranks: tuple[int, ...]
) -> None:
    words = ("-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}")
    process = real_jobs.start(2, *words)
    pids = wait_for_ranks(process.pid)
    time.sleep(2.0)
    for rank in ranks:
        os.kill(pids[rank], signal.SIGINT)
    output, _ = process.communicate(timeout=180)
    assert "Traceback" not in output, output
    assert output.count("was asked to stop before training began") + output.count("asked to stop; saved") == 1, output
    assert process.returncode == EXIT_STOPPED, output
    happened(f"to rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}: one line, code 75")
