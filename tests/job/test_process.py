"""What a process does to its own surroundings."""

from __future__ import annotations

import os

import pytest

from dba3c.job.process import quiet_stderr


def test_quiet_stderr_hides_only_while_it_lasts(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_stderr():
        os.write(2, b"noise")
    os.write(2, b"news")
    assert capfd.readouterr().err == "news"
