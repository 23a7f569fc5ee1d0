"""A short soak; `make soak` is the long one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.faults.soak import soak

KILLS, STEPS = 2, 2_400


@pytest.mark.fault(8, "SIGKILL at random moments, each followed by a resume")
def test_killed_and_resumed_equals_unbroken(tmp_path: Path, happened: Happened) -> None:
    start = time.monotonic()
    trainings = soak(KILLS, 1, tmp_path, print, STEPS)
    happened(
        f"{KILLS} kills, {trainings} training(s), weights equal those of the unbroken run", time.monotonic() - start
    )
