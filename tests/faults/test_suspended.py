"""A job that is stopped as a whole, as a suspended laptop or a pre-empting scheduler does it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults import four_ranks

SECONDS = float(os.environ.get("SUSPENDED_SECONDS", "12"))
LIMIT = "--comm.silence_seconds=5"


@pytest.mark.fault(51, f"SIGSTOP of the whole job for {SECONDS:g} s, with a limit of 5 s")
def test_a_job_that_is_suspended_as_a_whole_continues(tmp_path: Path, happened: Happened) -> None:
    job = four_ranks.Job(tmp_path, LIMIT, "--train.total_steps=1600", ranks=2)
    job.wait_for_update(20)
    processes = job.processes()
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    time.sleep(SECONDS)
    random.Random(0).shuffle(processes)
    since = time.monotonic()
    for process in processes:
        os.kill(process, signal.SIGCONT)
    saved = four_ranks.newest_update(tmp_path)
    job.wait_for_update(saved + 10)
    took = time.monotonic() - since
    ended = job.end(since)
    assert ended.code == 0, ended.output
    assert "dead" not in ended.output
    assert "stuck" not in ended.output
    assert real_jobs.summary(tmp_path)["steps"] == 1600
    happened("training continues, no false alarm, code 0", took)
