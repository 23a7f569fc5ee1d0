"""Asynchronous training when a worker, a server or the clerk fails, or a worker is only slow."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults import four_ranks
from tests.faults.four_ranks import FAULT_TOLERANT, HOST

STEPS = 2400
SERVER = ("--comm.strategy=server", "--comm.servers=2", "--comm.check_every_updates=20", f"--train.total_steps={STEPS}")


@pytest.mark.parametrize(("victim", "role"), [(3, "worker"), (1, "server"), (0, "clerk")])
@pytest.mark.fault(42, "SIGKILL in asynchronous training with comm.on_failure=shrink")
def test_the_survivors_return_to_the_last_meeting(tmp_path: Path, happened: Happened, victim: int, role: str) -> None:
    """The slices are divided anew; weights are compared at every meeting, or the job would not end with 0."""
    options = ("--comm.on_failure=shrink", *SERVER)
    job = four_ranks.Job(tmp_path, *options, fault=f"{victim}:45+:kill", launcher=FAULT_TOLERANT)
    job.wait_for_update(40)
    since = time.monotonic()
    job.wait_for_words("training continues on")
    took = time.monotonic() - since
    ended = job.end(since)
    assert ended.code == 0, ended.output
    found = re.search(rf"rank {victim} on {HOST} failed in update (\d+): training continues on 3 of 4", ended.output)
    assert found, ended.output
    assert int(found[1]) % 10 == 1  # of a meeting: checkpoints and checks are due at multiples of 10
    summary = real_jobs.summary(tmp_path)
    assert STEPS <= summary["steps"] < STEPS + 8
    assert four_ranks.loadable(tmp_path) == summary["updates"]
    happened(f"{role}: 3 continue from the last meeting, code 0", took, "updates since the last meeting")


@pytest.mark.fault(43, "SIGSTOP of a worker in asynchronous training")
def test_a_stopped_worker_holds_up_nobody_until_the_ranks_meet(tmp_path: Path, happened: Happened) -> None:
    seconds = 6.0
    quiet = ("--checkpoint.every_updates=400", "--comm.check_every_updates=0", "--comm.servers=2")
    job = four_ranks.Job(tmp_path, "--comm.strategy=server", *quiet, "--train.total_steps=6400")
    job.wait_for_update(400)
    stopped = job.signal(3, signal.SIGSTOP)
    time.sleep(seconds)
    job.signal(3, signal.SIGCONT)
    ended = job.end(stopped)
    assert ended.code == 0, ended.output
    late = real_jobs.summary(tmp_path)["updates"]
    assert late == 800
    happened("the others continue up to the next meeting and wait there, code 0", seconds, "nothing")


@pytest.mark.fault(44, "gradients that are not finite in asynchronous training")
def test_gradients_that_are_not_finite_end_the_job_on_all_ranks(tmp_path: Path, happened: Happened) -> None:
    job = four_ranks.Job(tmp_path, *SERVER, fault="2:25+:nan,1:25+:nan,0:25+:nan,3:25+:nan")
    ended = job.end(time.monotonic(), seconds=120)
    assert ended.code == 3, ended.output
    assert "were not finite in 5 updates in a row" in ended.output
    assert four_ranks.loadable(tmp_path) > 0
    happened("gave up after 5 updates in a row, the last good weights are saved, code 3", None, "nothing")
