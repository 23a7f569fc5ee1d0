"""Signals that ask a job to stop: all ranks agree on one update, save it and leave."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_ERROR, EXIT_STOPPED
from dba3c.run_files import checkpoint
from dba3c.run_files.directory import exit_code, stopped
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults import four_ranks
from tests.faults.four_ranks import HOST, loadable


@pytest.mark.fault(6, "SIGTERM or SIGUSR1, then a resume with fewer ranks")
@pytest.mark.parametrize(("number", "ranks"), [(signal.SIGTERM, (1,)), (signal.SIGUSR1, (0, 1, 2, 3))])
def test_a_signal_saves_and_stops_all(
    tmp_path: Path, happened: Happened, number: signal.Signals, ranks: tuple[int, ...]
) -> None:
    job = four_ranks.Job(tmp_path)
    job.wait_for_update(10)
    since = max(job.signal(rank, number) for rank in ranks)
    ended = job.end(since)
    assert ended.code == EXIT_STOPPED, ended.output
    stopped = real_jobs.summary(tmp_path)
    assert f"stopped by a signal to rank {ranks[0]} on {HOST}" in ended.output
    assert f"after {stopped['updates']} updates" in ended.output
    assert loadable(tmp_path) == stopped["updates"]
    if number == signal.SIGTERM:
        more = stopped["steps"] + 3 * 16
        resumed = real_jobs.train(2, tmp_path, f"--train.total_steps={more}")
        assert resumed.code == 0, resumed.output
        assert "resuming" in resumed.output
        assert real_jobs.summary(tmp_path)["steps"] == more
    whom = f"rank {ranks[0]}" if len(ranks) == 1 else "all ranks"
    happened(f"{number.name} to {whom}: all ranks agree on one update and save it, code 75; resumes", ended.seconds)


@pytest.mark.fault(40, "SIGTERM or SIGHUP to mpirun, with its output in a file")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_mpirun_is_noted_in_the_run_directory(
    tmp_path: Path, happened: Happened, number: signal.Signals
) -> None:
    """mpirun stops passing output on, kills its ranks soon after and ends with code 1."""
    process = real_jobs.start(2, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}")
    waiting.until(lambda: four_ranks.newest_update(tmp_path) >= 10)
    assert exit_code(tmp_path) is None
    since = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=180)
    took = time.monotonic() - since
    assert process.returncode != 0
    assert stopped(tmp_path), output
    log = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert "asked to stop by" in log
    assert "rerun the same command to resume" in log
    assert loadable(tmp_path) >= 10
    outcome = f"saved; exit_code has 75, log.txt the reason; mpirun's own code is {process.returncode}"
    happened(f"{number.name}: {outcome}", took)


def test_a_rank_that_fails_is_not_taken_for_a_signal(tmp_path: Path) -> None:
    """mpirun ends the other ranks with SIGTERM."""
    result = real_jobs.train(2, tmp_path, DBA3C_FAULT="1:5:exception")
    assert result.code == EXIT_ERROR, result.output
    assert exit_code(tmp_path) == EXIT_ERROR


@pytest.mark.fault(26, "Ctrl-C under mpirun")
def test_ctrl_c_under_mpirun_loses_nothing(tmp_path: Path, happened: Happened) -> None:
    """mpirun kills its ranks a quarter of a second after it passed the signal on; the paper's updates take longer."""
    slow = ("--preset=paper", "--game=pong", "--train.batch_size=256", "--evaluate.games=0", f"--run-dir={tmp_path}")
    process = real_jobs.start(2, "-m", "dba3c.train", *slow, "--checkpoint.every_updates=1", "--checkpoint.keep=1000")
    waiting.until(lambda: four_ranks.newest_update(tmp_path) >= 1)
    for path in checkpoint.newest_first(tmp_path / "checkpoints"):
        path.unlink()  # what is there from now on was saved later, or because of the signal
    ranks, since = real_jobs.ranks_of(process.pid), time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=180)
    assert "Traceback" not in output
    assert stopped(tmp_path)
    saved = checkpoint.newest_first(tmp_path / "checkpoints")
    assert saved
    assert checkpoint.load(saved[0]).progress["updates"] >= 1
    waiting.until(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks), 10)
    happened("saved before mpirun kills its ranks, 0.25 s later; no process is left", time.monotonic() - since)
