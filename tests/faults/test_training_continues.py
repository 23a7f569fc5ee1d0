"""Faults that a job survives: all of them in one, which must end as if they had not been."""

from __future__ import annotations

import signal
import time
from typing import Any, NamedTuple

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults import four_ranks
from tests.faults.four_ranks import HOST, lines

FAULTS = "1:12:nan,2:14:sim-crash,3:16:sim-hang,0:20:disk-full"


class Survived(NamedTuple):
    output: str
    summary: dict[str, Any]
    paused_seconds: float


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Survived:
    run_dir = tmp_path_factory.mktemp("run")
    (run_dir / "metrics.csv").symlink_to("/dev/full")  # every write fails
    options = ("--env.step_seconds=2", "--checkpoint.keep=99", "--train.log_every_seconds=0.2")
    job = four_ranks.Job(run_dir, *options, "--train.total_steps=3200", "--comm.check_every_updates=1", fault=FAULTS)
    job.wait_for_update(30)
    begin = job.signal(2, signal.SIGSTOP)
    time.sleep(5)
    job.signal(2, signal.SIGCONT)
    job.wait_for_words("was silent")
    paused = time.monotonic() - begin
    ended = job.end(time.monotonic())
    assert ended.code == 0, ended.output
    return Survived(ended.output, real_jobs.summary(run_dir), paused)


@pytest.mark.fault(4, "SIGSTOP of rank 2 for 5 s")
def test_a_pause_of_a_rank_is_reported_when_it_is_over(survived: Survived, happened: Happened) -> None:
    assert f"rank 2 on {HOST} was silent for" in survived.output
    happened("one slow update, reported with rank and seconds", survived.paused_seconds)


@pytest.mark.fault(9, "no space for a checkpoint")
def test_a_checkpoint_that_finds_no_space_is_reported_once(survived: Survived, happened: Happened) -> None:
    assert survived.output.count("could not save update 20: [Errno 28]") == 1
    happened("reported, older checkpoints kept, the next save succeeded")


@pytest.mark.fault(15, "NaN gradient on rank 1, once")
def test_an_update_with_a_nan_gradient_is_left_out_and_counted(survived: Survived, happened: Happened) -> None:
    assert survived.summary["skipped"] == 1
    happened("update skipped on all ranks, counted", lost="one update")


@pytest.mark.fault(17, "simulators of rank 2 crash")
def test_simulators_that_crash_are_rebuilt(survived: Survived, happened: Happened) -> None:
    assert len(lines(survived.output, f"rank 2 on {HOST}: simulators 4-5 failed, InjectedError.*rebuilt")) == 1
    assert survived.summary["rebuilt"] == 2
    happened("rebuilt, reported, counted", lost="their episodes")


@pytest.mark.fault(18, "simulators of rank 3 hang")
def test_simulators_that_hang_are_rebuilt(survived: Survived, happened: Happened) -> None:
    assert len(lines(survived.output, f"rank 3 on {HOST}: simulators 6-7 failed, TimeoutError.*rebuilt")) == 1
    happened("rebuilt after 2 s (env.step_seconds), reported, counted", 2.0, lost="their episodes")


@pytest.mark.fault(21, "metrics cannot be written")
def test_metrics_that_cannot_be_written_are_reported_once(survived: Survived, happened: Happened) -> None:
    assert survived.output.count("cannot be written: [Errno 28]") == 1
    happened("reported once, training continues", lost="the metrics")


def test_all_the_same_the_steps_are_done(survived: Survived) -> None:
    assert survived.summary["steps"] >= 3200
    assert survived.summary["ranks"] == 4
