"""The guard over MPI's own start, which may take long: a word after some seconds."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from dba3c.job import start_guard
from tests.fakes import waiting


@pytest.mark.parametrize(("task", "lines"), [("0", 1), ("3", 0)])
def test_a_slow_start_is_told_once_by_the_first_rank(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], task: str, lines: int
) -> None:
    monkeypatch.setattr(start_guard, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(start_guard, "PATIENCE", 0.03)
    monkeypatch.setattr(start_guard, "task_number", lambda: task)
    reader, writer = os.pipe()
    thread = threading.Thread(target=start_guard.watch, args=(reader, os.getpid(), 1e9))
    thread.start()
    thread.join(0.5)
    os.close(writer)  # the watchdog takes over
    thread.join(10)
    os.close(reader)
    assert not thread.is_alive()
    assert capfd.readouterr().err.count("still starting after") == lines


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGSTOP, signal.SIGTERM])
def test_a_guard_that_is_released_leaves_no_process(number: signal.Signals) -> None:
    guard = start_guard.StartGuard(60.0)
    child = guard._child
    os.kill(child, number)
    waiting.within(10, guard.release)
    assert not Path(f"/proc/{child}").exists()
    guard.release()  # again, without effect
