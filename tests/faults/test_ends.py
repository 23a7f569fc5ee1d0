"""Faults that end a job: soon, with the right exit code, with words that name the rank, and with nothing lost."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dba3c.job.exit import EXIT_ERROR, EXIT_LOST, EXIT_NOT_FINITE
from dba3c.run_files import checkpoint
from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults.four_ranks import HOST, ended_by, lines, loadable

SOON = ("--comm.silence_seconds=5",)  # instead of the 30 s that a busy cluster needs


@pytest.mark.fault(1, "SIGKILL of rank 2")
def test_a_killed_rank_ends_the_job_and_is_named(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("2:25:kill", tmp_path)
    assert ended.code not in (0, 2), ended.output
    assert "rank 2 with PID" in ended.output  # the launcher's words
    assert HOST in ended.output
    assert ended.seconds < 30
    assert loadable(tmp_path) in (20, 24)
    happened(f"all ended, code {ended.code}, the launcher names rank and host", ended.seconds, "at most 5 updates")


@pytest.mark.fault(2, "SIGKILL of rank 0")
def test_a_killed_rank_0_ends_the_job_and_is_named(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("0:25:kill", tmp_path)
    assert ended.code not in (0, 2), ended.output
    assert "rank 0 with PID" in ended.output
    assert ended.seconds < 30
    assert loadable(tmp_path) == 20
    happened(f"all ended, code {ended.code}, the launcher names rank and host", ended.seconds, "5 updates")


@pytest.mark.parametrize("kind", ["exception", "thread"])
@pytest.mark.fault(3, "exception on rank 2")
def test_an_exception_ends_the_job_with_its_traceback_and_a_line_that_names_the_rank(
    tmp_path: Path, happened: Happened, kind: str
) -> None:
    ended = ended_by(f"2:25:{kind}", tmp_path)
    assert ended.code == EXIT_ERROR, ended.output
    traceback, last = ended.output.index("Traceback"), ended.output.index(f"dba3c: rank 2 on {HOST} failed")
    assert traceback < last
    assert "InjectedError: asked for by DBA3C_FAULT" in ended.output[last:]
    assert (", after update 24:" in ended.output[last:]) == (kind == "exception")
    assert loadable(tmp_path) >= 20
    where = "learner" if kind == "exception" else "a thread"
    happened(f"({where}) traceback, then one line with rank, host, cause; code 1", ended.seconds, "at most 5 updates")


@pytest.mark.parametrize(("stopped", "witness"), [(2, 0), (0, 1)])
@pytest.mark.fault(5, "SIGSTOP for ever")
def test_a_rank_stopped_for_ever_is_named_by_one_other_and_the_job_saved(
    tmp_path: Path, happened: Happened, stopped: int, witness: int
) -> None:
    ended = ended_by(f"{stopped}:25:stop", tmp_path, *SOON)
    assert ended.code == EXIT_LOST, ended.output
    silent = f"rank {witness} on {HOST}: rank {stopped} on {HOST} is dead, stopped or cut off"
    words = silent + ".*last reported update is ([0-9]+);"
    named = lines(ended.output, words)
    assert len(named) == 1, ended.output
    # What it said last may be a sixth of a second old, in which it makes several updates.
    assert 1 <= int(re.findall(words, named[0])[0]) <= 24
    assert len(lines(ended.output, "the job ends")) == 1, ended.output  # one rank speaks for all
    assert 4 < ended.seconds < 30
    assert loadable(tmp_path) in (24, 25)  # mpirun wakes up the stopped rank before it ends it
    happened(f"rank {stopped} named by rank {witness} after 5 s, saved, code {EXIT_LOST}", ended.seconds)


@pytest.mark.fault(5, "a rank computes for ever")
def test_a_rank_that_computes_for_ever_is_named_and_the_job_saved(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("3:25:hang", tmp_path, *SOON)
    assert ended.code == EXIT_LOST, ended.output
    assert lines(ended.output, f"rank 3 on {HOST} is stuck in update 25"), ended.output
    assert loadable(tmp_path) == 24
    happened(f"rank 3 named after 5 s, saved, code {EXIT_LOST}", ended.seconds)


@pytest.mark.fault(15, "NaN gradient on rank 2, for ever")
def test_gradients_that_stay_nan_end_the_job_with_good_weights_saved(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("2:18+:nan", tmp_path)
    assert ended.code == EXIT_NOT_FINITE, ended.output
    assert f"gradients of rank 2 on {HOST} were not finite in 5 updates in a row" in ended.output
    saved = checkpoint.load(checkpoint.newest_first(tmp_path / "checkpoints")[0])
    assert np.isfinite(saved.weights).all()
    assert (saved.progress["updates"], saved.progress["skipped"]) == (22, 5)
    happened(f"five updates skipped, then stopped; rank named, good weights saved, code {ended.code}", ended.seconds)


@pytest.mark.fault(16, "weights of rank 2 drift away")
def test_weights_that_drift_are_found_at_the_next_comparison(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("2:17:drift", tmp_path, "--comm.check_every_updates=15")
    assert ended.code == EXIT_ERROR, ended.output
    assert "after update 30 the weights of ranks [2] differ" in ended.output
    happened("found at the next comparison, rank named, code 1", ended.seconds, "what followed the drift")


@pytest.mark.fault(17, "simulators crash again and again")
def test_simulators_that_always_crash_are_given_up_and_end_the_job(tmp_path: Path, happened: Happened) -> None:
    ended = ended_by("1:18+:sim-crash", tmp_path, "--env.rebuilds_per_minute=3")
    assert ended.code == EXIT_ERROR, ended.output
    assert len(lines(ended.output, "simulators 2-3 failed.*rebuilt")) == 3
    assert f"dba3c: rank 1 on {HOST} failed, after update 17: SimulatorError: simulators failed 4 times" in ended.output
    happened("rebuilt three times, then the job ends; rank named, code 1", ended.seconds, "at most 8 updates")


def test_a_misspelt_fault_is_refused_with_a_near_one(tmp_path: Path) -> None:
    result = real_jobs.train(2, tmp_path / "run", DBA3C_FAULT="1:5:kil")
    assert result.code == 2, result.output
    assert "did you mean kill?" in result.output
    assert result.output.count("dba3c:") == 1
