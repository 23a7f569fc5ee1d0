"""Faults that need hosts: a cut network, a slow one, a host's rank that dies."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST
from tests.cluster import slurm
from tests.cluster.commands import TRAIN, ended, sbatch, srun, wait_for
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import loadable, newest_update

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.fault(1, "SIGKILL on one of four hosts, comm.on_failure=shrink")
def test_the_other_hosts_continue(tmp_path: Path, happened: Happened) -> None:
    """Under mpirun inside an allocation, as slurm/train.sbatch does it with LAUNCH=mpirun."""
    log, launcher = tmp_path / "log", f"{Path(sys.executable).parent}/mpirun"
    options = ("--train.total_steps=1600", "--comm.check_every_updates=1")
    variables = {"RUN_DIR": str(tmp_path), "LAUNCH": launcher, "DBA3C_FAULT": "2:25:kill"}
    job = sbatch("train.sbatch", log, *real_jobs.TINY, *options, **variables)
    wait_for(lambda: newest_update(tmp_path) >= 20, log)
    since = time.monotonic()
    wait_for(lambda: "training continues on" in log.read_text(encoding="utf-8"), log)
    took = time.monotonic() - since
    wait_for(lambda: ended(job), log)
    text = log.read_text(encoding="utf-8")
    assert "rank 2 on node3 failed in update 25: training continues on 3 of 4 ranks" in text
    assert real_jobs.summary(tmp_path)["lost_ranks"] == ["rank 2 on node3"]
    assert real_jobs.summary(tmp_path)["steps"] >= 1600
    assert "back into the queue" not in text
    assert took < 10
    happened("rank and host named, 3 continue with equal weights, code 0", took, "the update in flight")


@pytest.mark.fault(19, "network of one of four hosts cut")
def test_a_host_that_is_cut_off_is_named_and_the_job_saved(tmp_path: Path, happened: Happened) -> None:
    log = (tmp_path / "log").open("w+", encoding="utf-8")
    words = (*TRAIN, f"--run-dir={tmp_path}", "--comm.silence_seconds=6")
    process = subprocess.Popen(
        slurm.as_user("srun", "--mpi=pmix", "--kill-on-bad-exit", "-N4", "-n4", *words),
        stdout=log, stderr=log, env=slurm.environment(), cwd=real_jobs.ROOT,
    )  # fmt: skip
    try:
        wait_for(lambda: newest_update(tmp_path) >= 10, tmp_path / "log")
        slurm.link("node3", "down")
        since = time.monotonic()
        wait_for(lambda: "cut off" in (tmp_path / "log").read_text(encoding="utf-8"), tmp_path / "log")
        took = time.monotonic() - since
        waiting.until(lambda: not slurm.trainings("node3"), 30, lambda: "the rank on node3 does not leave by itself")
    finally:
        slurm.link("node3", "up")
        process.wait(60)
    text = (tmp_path / "log").read_text(encoding="utf-8")
    assert "rank 0 on node1: rank 2 on node3 is dead, stopped or cut off" in text
    assert took < 20
    assert process.returncode == EXIT_LOST, text
    loadable(tmp_path)
    happened(
        f"rank and host named after 6 s, saved, code {process.returncode}; the rank that was cut off ends by itself",
        took,
    )


@pytest.mark.fault(20, "slow network (10 Mbit/s)")
def test_a_slow_network_is_waited_for_and_reported(tmp_path: Path, happened: Happened) -> None:
    slurm.shape("10mbit")
    try:
        options = ("--train.total_steps=1600", "--train.log_every_seconds=0.5")
        result = srun(*TRAIN, f"--run-dir={tmp_path}", *options)
    finally:
        slurm.shape("10gbit")
    assert result.code == 0, result.output
    waited = real_jobs.summary(tmp_path)["shares"]["wait"]
    assert waited > 0.4
    assert float(list(csv.DictReader((tmp_path / "metrics.csv").open()))[-1]["wait_share"]) > 0.3
    happened(f"training continues; {waited:.0%} of the time is spent waiting, as summary and metrics say")
