"""Signals that ask a job to stop: all ranks agree on one update, save it and leave."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_STOPPED
from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults import scenes
from tests.faults.scenes import HOST, loadable


@pytest.mark.fault(6, "SIGTERM or SIGUSR1, then a resume with fewer ranks")
@pytest.mark.parametrize(("number", "ranks"), [(signal.SIGTERM, (1,)), (signal.SIGUSR1, (0, 1, 2, 3))])
def test_a_signal_saves_and_stops_all(
    tmp_path: Path, happened: Happened, number: signal.Signals, ranks: tuple[int, ...]
) -> None:
    job = scenes.Job(tmp_path)
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
    happened(f"{number.name} to {whom}: agreed on one update, saved, code 75; resumes", ended.seconds)
