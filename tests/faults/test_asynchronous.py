"""Asynchronous training when a worker, a server or the clerk fails, or a worker is only slow."""

from __future__ import annotations

import csv
import re
import signal
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST, EXIT_NOT_FINITE, EXIT_STOPPED
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults import four_ranks
from tests.faults.four_ranks import FAULT_TOLERANT, HOST, lines

STEPS = 2400
SERVER = ("--comm.strategy=server", "--comm.servers=2", "--comm.check_every_updates=20", f"--train.total_steps={STEPS}")
SELDOM = ("--checkpoint.every_updates=0", "--comm.check_every_updates=0")
ROLES = pytest.mark.parametrize(("victim", "role"), [(3, "worker"), (1, "server"), (0, "clerk")])
KILLED = 137
SETTLED = 16  # rows of metrics, half a second each, after which the network is compiled


def killed_in_push(
    run_dir: Path, victim: int, role: str, *options: str, launcher: tuple[str, ...] = ()
) -> four_ranks.Job:
    """Start a job of which a rank dies in mid-push, after update 45, and wait until it is about to."""
    program = ("tests.faults.killed_in_push", role, str(victim), "45", "dba3c.train")
    job = four_ranks.Job(run_dir, *SERVER, *options, launcher=launcher, program=program)
    job.wait_for_update(40)
    return job


@ROLES
@pytest.mark.fault(42, "SIGKILL in mid-push in asynchronous training with comm.on_failure=shrink")
def test_the_survivors_return_to_the_last_meeting(tmp_path: Path, happened: Happened, victim: int, role: str) -> None:
    """The slices are divided anew; weights are compared at every meeting, or the job would not end with 0."""
    job = killed_in_push(tmp_path, victim, role, "--comm.on_failure=shrink", launcher=FAULT_TOLERANT)
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


@ROLES
@pytest.mark.fault(45, "SIGKILL in mid-push in asynchronous training")
def test_the_job_ends_with_the_last_meeting_saved(tmp_path: Path, happened: Happened, victim: int, role: str) -> None:
    job = killed_in_push(tmp_path, victim, role)
    ended = job.end(time.monotonic())
    assert ended.code == KILLED, ended.output
    assert four_ranks.loadable(tmp_path) == 40
    happened(
        f"{role}: all ended, code {KILLED}, the last meeting loads", ended.seconds, "updates since the last meeting"
    )


@pytest.mark.fault(42, "SIGKILL in mid-push in asynchronous training with comm.on_failure=shrink")
def test_groups_of_gradients_become_smaller_when_a_rank_fails(tmp_path: Path, happened: Happened) -> None:
    """Synchronous through servers: the three that are left would wait for a fourth gradient for ever."""
    together = ("--comm.aggregate=4", "--comm.on_failure=shrink")
    job = killed_in_push(tmp_path, 3, "worker", *together, launcher=FAULT_TOLERANT)
    ended = job.end(time.monotonic())
    assert ended.code == 0, ended.output
    assert "training continues on 3 of 4 ranks, from update 40" in ended.output
    assert real_jobs.summary(tmp_path)["steps"] >= STEPS
    happened("worker, comm.aggregate=4: 3 continue in groups of 3, code 0", None, "updates since the last meeting")


@pytest.mark.fault(42, "SIGKILL in mid-push in asynchronous training with comm.on_failure=shrink")
def test_without_a_rank_that_plays_the_job_ends(tmp_path: Path, happened: Happened) -> None:
    alone = ("--comm.servers=3", "--comm.dedicated=true", "--comm.on_failure=shrink")
    job = killed_in_push(tmp_path, 3, "worker", *alone, launcher=FAULT_TOLERANT)
    ended = job.end(time.monotonic())
    assert ended.code == EXIT_LOST, ended.output
    assert len(lines(ended.output, f"no rank with simulators is left after rank 3 on {HOST} failed")) == 1, ended.output
    assert four_ranks.loadable(tmp_path) == 40
    happened("the only worker: the job ends, code 5", ended.seconds, "updates since the last meeting")


@pytest.mark.parametrize("strategy", ["server", "hogwild"])
@pytest.mark.fault(53, "SIGKILL in asynchronous training whose ranks have no reason to meet for hours")
def test_ranks_that_seldom_meet_do_so_for_a_save_that_is_overdue(
    tmp_path: Path, happened: Happened, strategy: str
) -> None:
    job = four_ranks.Job(tmp_path, f"--comm.strategy={strategy}", *SELDOM, "--checkpoint.every_seconds=1")
    job.wait_for_update(1)
    saved = four_ranks.newest_update(tmp_path)
    job.wait_for_update(saved + 1)
    ended = job.end(job.signal(2, signal.SIGKILL))
    assert ended.code == KILLED, ended.output
    assert four_ranks.loadable(tmp_path) > saved
    happened(f"{strategy}: all ended, code {KILLED}, the last save loads", ended.seconds, "checkpoint.every_seconds")


@pytest.mark.fault(43, "SIGSTOP of a worker for 20 s in asynchronous training")
def test_a_stopped_worker_holds_up_no_other(tmp_path: Path, happened: Happened) -> None:
    seconds = 20.0
    rows = "--train.log_every_seconds=0.5"
    job = four_ranks.Job(tmp_path, "--comm.strategy=server", "--comm.servers=2", *SELDOM, rows)
    job.wait_for_words("training begins")
    waiting.until(lambda: len(updates_by_time(tmp_path)) > SETTLED, why=lambda: job.output)
    before = updates_by_time(tmp_path)
    job.signal(3, signal.SIGSTOP)
    time.sleep(seconds)
    job.signal(3, signal.SIGCONT)
    during = updates_by_time(tmp_path)[len(before) :]
    job.wait_for_words(f"rank 3 on {HOST} was silent for")
    ended = job.end(job.signal(1, signal.SIGTERM))
    assert ended.code == EXIT_STOPPED, ended.output
    share = pace(during[2:]) / pace(before[-SETTLED // 2 :])
    assert share > 0.75 * 0.8  # three of four workers are left, and each has at least as much of a core as before
    happened(f"the other three make {share:.0%} of the updates of four; code {EXIT_STOPPED}", seconds, "nothing")


def updates_by_time(run_dir: Path) -> list[tuple[float, float]]:
    """Read the whole rows of the metrics, the first of which may not be there yet."""
    file = run_dir / "metrics.csv"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    whole = csv.DictReader(line for line in lines if line.endswith("\n"))
    return [(float(row["seconds"]), float(row["updates"])) for row in whole]


def pace(rows: list[tuple[float, float]]) -> float:
    """Updates/s between the first and the last row."""
    (start, first), (end, last) = rows[0], rows[-1]
    return (last - first) / (end - start)


@pytest.mark.parametrize(
    ("victim", "fault", "words"),
    [
        (3, "stop", "is dead, stopped or cut off"),  # a worker
        (1, "stop", "is dead, stopped or cut off"),  # a server
        (3, "hang", "is stuck in update"),
    ],
)
@pytest.mark.fault(46, "a rank of asynchronous training stops or computes for ever")
def test_who_does_not_come_back_is_named(
    tmp_path: Path, happened: Happened, victim: int, fault: str, words: str
) -> None:
    job = four_ranks.Job(tmp_path, *SERVER, "--comm.silence_seconds=5", fault=f"{victim}:45:{fault}")
    job.wait_for_update(40)
    ended = job.end(time.monotonic())
    assert ended.code == EXIT_LOST, ended.output
    named = lines(ended.output, "the job ends")
    assert len(named) == 1, ended.output
    assert re.search(rf"rank {victim} on {HOST} {words}", named[0]), named
    assert "the last regular save counts" in ended.output
    assert four_ranks.loadable(tmp_path) % 10 == 0
    happened(
        f"{fault}: rank {victim} named after 5 s, code {EXIT_LOST}", ended.seconds, "updates since the last meeting"
    )


@pytest.mark.fault(44, "a gradient that is not finite in asynchronous training")
def test_a_gradient_that_is_not_finite_is_left_out(tmp_path: Path, happened: Happened) -> None:
    seldom = ("--checkpoint.every_updates=100", "--comm.check_every_updates=100")  # gradients at a meeting are refused
    job = four_ranks.Job(tmp_path, *SERVER, *seldom, fault="2:25:nan")
    ended = job.end(time.monotonic())
    assert ended.code == 0, ended.output
    summary = real_jobs.summary(tmp_path)
    assert summary["skipped"] == 1
    assert STEPS <= summary["steps"] < STEPS + 8
    happened("once: left out on all servers, counted, training continues", None, "one gradient")


@pytest.mark.fault(44, "a gradient that is not finite in asynchronous training")
def test_gradients_that_are_not_finite_end_the_job_on_all_ranks(tmp_path: Path, happened: Happened) -> None:
    job = four_ranks.Job(tmp_path, *SERVER, fault="2:25+:nan,1:25+:nan,0:25+:nan,3:25+:nan")
    ended = job.end(time.monotonic(), seconds=120)
    assert ended.code == EXIT_NOT_FINITE, ended.output
    assert "were not finite in 5 updates in a row" in ended.output
    assert four_ranks.loadable(tmp_path) > 0
    happened("for ever: gave up after 5 updates in a row, good weights saved, code 3", None, "nothing")
