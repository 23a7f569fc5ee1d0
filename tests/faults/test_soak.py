"""A short soak; `make soak` is the long one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.faults.soak import Soak, soak, summary

SIGNALS, STEPS = 4, 800


@pytest.mark.fault(8, "signals at random moments to any process, and resumes")
def test_disturbed_and_resumed_equals_unbroken(tmp_path: Path, happened: Happened) -> None:
    start = time.monotonic()
    state = Soak(tmp_path, SIGNALS, 1, print, STEPS)
    assert soak(state)
    happened(summary(state), time.monotonic() - start)
