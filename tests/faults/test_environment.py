"""Environments that lack what libraries count on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.fault(47, "HOME is not set")
def test_a_job_without_a_home_trains(tmp_path: Path, happened: Happened, ranks: int) -> None:
    """Open MPI does not start without one; where mpirun is typed, its own message says so."""
    words = real_jobs.command(0, "-m", "dba3c.train", *real_jobs.TINY, "--train.total_steps=160", f"--ranks={ranks}")
    result = real_jobs.run_words(["env", "-u", "HOME", *words, f"--run-dir={tmp_path}"])
    assert result.code == 0, result.output
    assert real_jobs.summary(tmp_path)["steps"] == 160
    happened(f"--ranks={ranks}: trains, code 0")
