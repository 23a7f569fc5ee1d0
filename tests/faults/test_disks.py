"""Disks that are slow or hang: a library that is loaded before the C library makes fsync take its time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST, EXIT_OK
from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults.four_ranks import HOST, loadable
from tests.faults.preloading import compiled

SLOW_SECONDS = int(os.environ.get("FSYNC_SECONDS", "7"))
SOON = ("--comm.silence_seconds=5", "--checkpoint.save_seconds=12")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled("slow_fsync.c", tmp_path_factory.mktemp("library"))


def train(ranks: int, run_dir: Path, library: str, seconds: int, *options: str, name: str = "") -> real_jobs.Result:
    """Every fsync from the third checkpoint on takes so many seconds, or every one of a file."""
    slow = {"LD_PRELOAD": library, "SLOW_SECONDS": str(seconds), "SLOW_NAME": name or "update-"}
    slow |= {"SLOW_AFTER": "0" if name else "2"}
    words = ("-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={run_dir}", *SOON, *options)
    return real_jobs.run(ranks, *words, seconds=real_jobs.PATIENCE + 3 * SLOW_SECONDS, **slow)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.fault(28, "a disk hangs in fsync")
def test_a_save_that_hangs_is_reported_and_then_ends_the_job(
    tmp_path: Path, happened: Happened, library: str, ranks: int
) -> None:
    result = train(ranks, tmp_path, library, 1000)
    assert result.code == EXIT_LOST, result.output
    assert result.output.count(f"rank 0 on {HOST} has been saving for 5 s so far") == 1, result.output
    assert f"rank 0 on {HOST} has been saving for 12 s; the job ends" in result.output
    assert loadable(tmp_path) >= 10
    assert "has been saving for 12 s; the job ends" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    happened(f"{ranks} ranks: reported after 5 s, named and ended after 12 s (checkpoint.save_seconds), code 5", 12.0)


@pytest.mark.fault(28, f"a disk is slow: fsync takes {SLOW_SECONDS} s, longer than comm.silence_seconds")
def test_a_slow_save_ends_nothing(tmp_path: Path, happened: Happened, library: str) -> None:
    usual = 5 if SLOW_SECONDS < 60 else 30
    longer = (f"--comm.silence_seconds={usual}", f"--checkpoint.save_seconds={2 * SLOW_SECONDS}")
    result = train(2, tmp_path, library, SLOW_SECONDS, "--train.total_steps=480", *longer)
    assert result.code == 0, result.output
    reported = result.output.count(f"rank 0 on {HOST} has been saving for {usual} s so far")
    assert reported == 2, result.output  # of update 30, and of the last
    assert real_jobs.summary(tmp_path)["updates"] == 30
    happened(f"reported after {usual} s, training continues, code 0")


@pytest.mark.parametrize(("seconds", "code"), [(7, EXIT_OK), (1000, EXIT_LOST)])
@pytest.mark.fault(28, "a disk is slow, or hangs, when training is over")
def test_the_last_files_are_waited_for_as_long_as_a_save(
    tmp_path: Path, happened: Happened, library: str, seconds: int, code: int
) -> None:
    """All ranks wait for rank 0 under the eyes of the watchdog, not in MPI_Finalize."""
    result = train(2, tmp_path, library, seconds, "--train.total_steps=160", name="summary.json")
    assert result.code == code, result.output
    assert result.output.count(f"rank 0 on {HOST} has been saving for 5 s so far") == 1, result.output
    assert result.output.count("has been saving for 12 s; the job ends") == (code == EXIT_LOST), result.output
    assert loadable(tmp_path) == 10
    outcome = "reported, ends as usual" if code == EXIT_OK else "named and ended after checkpoint.save_seconds (12)"
    happened(f"{outcome}, code {code}", float(min(seconds, 12)))
