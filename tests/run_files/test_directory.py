"""The lock of a run directory, which somebody else may have made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files.directory import prepare_directory


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        prepare_directory(path)
    return str(error.value)


def test_a_second_job_is_told_who_trains_there(tmp_path: Path) -> None:
    with prepare_directory(tmp_path / "run"):
        assert f"process {os.getpid()} on" in refused(tmp_path / "run")
    with prepare_directory(tmp_path / "run"):
        assert (tmp_path / "run" / "lock").read_text(encoding="utf-8").count("process") == 1


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_leads_elsewhere_is_refused_and_what_it_leads_to_untouched(tmp_path: Path, link: object) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (tmp_path / "run").mkdir()
    assert callable(link)
    link(victim, tmp_path / "run" / "lock")
    message = refused(tmp_path / "run")
    assert victim.read_text(encoding="utf-8") == "precious"
    assert message.startswith(f"--run-dir={tmp_path / 'run'}: ")
    assert "lock" in message
    assert "remove it" in message or "choose another" in message


def test_a_link_to_nothing_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").symlink_to(tmp_path / "new")
    refused(tmp_path / "run")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "lock")
    assert "lock" in refused(tmp_path)


def test_what_a_lock_says_is_shown_in_one_short_line(tmp_path: Path) -> None:
    with prepare_directory(tmp_path) as lock:
        lock.write("x" * 100_000 + "\n\x1b[2J\n")
        lock.flush()
        message = refused(tmp_path)
    assert len(message) < 700
    assert "\x1b" not in message
