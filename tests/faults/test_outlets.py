"""Terminals and streams that go away: training continues, and log.txt has every message."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs, waiting

STEPS = "--train.total_steps=400"


def shell(run_dir: Path, redirection: str) -> subprocess.CompletedProcess[str]:
    words = real_jobs.command(0, "-m", "dba3c.train", *real_jobs.TINY, STEPS, f"--run-dir={run_dir}")
    line = " ".join(words) + redirection
    return subprocess.run(["bash", "-c", line], cwd=real_jobs.ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", ["2>/dev/full", ">/dev/full 2>&1", "2>&-", ">&- 2>&-"])
@pytest.mark.fault(29, "stderr cannot be written")
def test_streams_that_cannot_be_written_change_nothing(tmp_path: Path, happened: Happened, redirection: str) -> None:
    result = shell(tmp_path, f" {redirection}")
    assert result.returncode == 0, result.stderr
    assert real_jobs.summary(tmp_path)["steps"] == 400
    assert "done after 50 updates, 400 steps" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    happened(f"{redirection}: training continues, code 0, every message in log.txt")


@pytest.mark.fault(29, "stderr cannot be written")
def test_a_reader_that_leaves_changes_nothing(tmp_path: Path, happened: Happened) -> None:
    result = shell(tmp_path, " 2>&1 | head -1; exit ${PIPESTATUS[0]}")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert text.count("cannot write to the terminal") == 1
    assert "done after 50 updates, 400 steps" in text
    happened("2>&1 | head -1: training continues, code 0, every message in log.txt")


@pytest.mark.fault(30, "the terminal is closed while mpirun lives on")
def test_a_terminal_that_is_closed_does_not_end_the_training(tmp_path: Path, happened: Happened) -> None:
    """As for a job that was disowned: mpirun is the leader of no terminal, so it gets no SIGHUP."""
    master, slave = pty.openpty()
    words = real_jobs.command(2, "-m", "dba3c.train", *real_jobs.TINY, "--train.total_steps=4000")
    process = subprocess.Popen(
        [*words, f"--run-dir={tmp_path}"], cwd=real_jobs.ROOT, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    reading = time.monotonic() + 90
    while not (tmp_path / "checkpoints").is_dir():  # the display must not fill the terminal's buffer
        assert time.monotonic() < reading
        os.set_blocking(master, False)
        try:
            os.read(master, 65536)
        except BlockingIOError:
            time.sleep(0.05)
    os.close(master)
    waiting.until(lambda: process.poll() is not None)
    assert real_jobs.summary(tmp_path)["steps"] == 4000
    assert "done after" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    happened("training continues to its end, messages in log.txt")
