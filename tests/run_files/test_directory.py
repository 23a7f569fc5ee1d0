"""The lock of a run directory, which somebody else may have made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dba3c.config.messages import ConfigError
from dba3c.job.exit import EXIT_ERROR, EXIT_OK, EXIT_STOPPED
from dba3c.run_files.directory import (
    STOPPED,
    RunDirectory,
    exit_code,
    note_exit_code,
    prepare_directory,
    stopped,
    write_exit_code,
)


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
@pytest.mark.fault(
    37,
    "lock of a run directory is a link to another file",
    "refused in one line, code 2; the file is untouched",
)
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
    with prepare_directory(tmp_path):
        (tmp_path / "lock").write_text("x" * 100_000 + "\n\x1b[2J\n", encoding="utf-8")
        message = refused(tmp_path)
    assert len(message) < 700
    assert "\x1b" not in message


def test_the_first_reason_to_end_stays_until_the_job_ends_in_order(tmp_path: Path) -> None:
    assert STOPPED == EXIT_STOPPED
    assert exit_code(tmp_path) is None
    note_exit_code(tmp_path, EXIT_STOPPED)
    note_exit_code(tmp_path, EXIT_ERROR)  # of a rank whose neighbour the launcher has killed
    assert stopped(tmp_path)
    write_exit_code(tmp_path, EXIT_OK)
    assert not stopped(tmp_path)
    assert exit_code(tmp_path) == EXIT_OK


def test_a_rank_that_failed_makes_a_launcher_send_signals_which_are_no_reason(tmp_path: Path) -> None:
    note_exit_code(tmp_path, EXIT_ERROR)
    note_exit_code(tmp_path, EXIT_STOPPED)
    assert not stopped(tmp_path)


def test_a_new_job_forgets_how_the_last_one_ended(tmp_path: Path) -> None:
    write_exit_code(tmp_path, EXIT_STOPPED)
    prepare_directory(tmp_path).close()
    assert exit_code(tmp_path) is None


def test_a_directory_that_is_not_here_gets_no_exit_code(tmp_path: Path) -> None:
    note_exit_code(tmp_path / "elsewhere", EXIT_STOPPED)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("text", ["", "seventy", "7" * 5000, "75 75"])
def test_an_exit_code_that_is_none_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "exit_code").write_text(text, encoding="utf-8")
    assert exit_code(tmp_path) is None


class Told:
    """A log that notes what is asked of it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reopened = 0

    def say(self, text: str) -> None:
        self.texts.append(text)

    def reopen(self) -> None:
        self.reopened += 1


def test_a_directory_that_was_removed_is_created_again_and_locked(tmp_path: Path) -> None:
    run_dir, told = tmp_path / "run", Told()
    with prepare_directory(run_dir) as claim:
        directory = RunDirectory(run_dir, claim, told)
        directory.look()
        assert not told.texts
        shutil.rmtree(run_dir)
        directory.look()
        directory.look()
        assert told.texts == [f"{run_dir} or its lock was removed: it was created again, and training continues"]
        assert (told.reopened, directory.taken) == (1, False)
        assert f"process {os.getpid()} on" in refused(run_dir)
    prepare_directory(run_dir).close()


def test_a_directory_that_cannot_be_created_again_is_tried_again(tmp_path: Path) -> None:
    run_dir, told = tmp_path / "runs" / "x", Told()
    with prepare_directory(run_dir) as claim:
        directory = RunDirectory(run_dir, claim, told)
        shutil.rmtree(tmp_path / "runs")
        (tmp_path / "runs").touch()
        directory.look()
        assert not told.texts
        (tmp_path / "runs").unlink()
        directory.look()
        assert told.reopened == 1
