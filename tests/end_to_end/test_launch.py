"""dba3c train --ranks: it starts mpirun itself, and Ctrl-C ends it well, also under make."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_OK, EXIT_STOPPED
from dba3c.run_files import checkpoint
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import newest_update


def words(run_dir: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={run_dir}", *options]


def test_ranks_are_started_as_many_as_asked_for(tmp_path: Path) -> None:
    result = real_jobs.run_words(words(tmp_path, "--ranks=3", "--train.total_steps=480"))  # one more than cores
    assert result.code == EXIT_OK, result.output
    assert real_jobs.summary(tmp_path)["ranks"] == 3
    assert result.output.rstrip().splitlines()[-1].startswith("done after 20 updates, 480 steps")


def test_bad_input_is_refused_before_a_rank_starts(tmp_path: Path) -> None:
    result = real_jobs.run_words(words(tmp_path, "--ranks=2", "--env.n_sim=0"))
    assert (result.code, result.output.count("\n")) == (EXIT_BAD_INPUT, 1)


def test_ranks_that_refuse_are_heard_and_mpirun_is_not(tmp_path: Path) -> None:
    result = real_jobs.run_words(words(tmp_path, "--ranks=2"), DBA3C_FAULT="nonsense")
    assert (result.code, result.output.count("\n")) == (EXIT_BAD_INPUT, 1), result.output


def test_a_signal_saves_and_the_last_line_says_so(tmp_path: Path) -> None:
    process = real_jobs.start_words(words(tmp_path, "--ranks=2"))
    waiting.until(lambda: newest_update(tmp_path) >= 10)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)  # two quick ones are one
    output, _ = process.communicate(timeout=180)
    assert process.returncode == EXIT_STOPPED, output
    last = output.rstrip().splitlines()[-1]
    assert "stopped by a signal to rank 0" in last
    assert last.endswith("rerun the same command to resume")
    saved = checkpoint.load(checkpoint.newest_first(tmp_path / "checkpoints")[0])
    assert saved.progress["updates"] == real_jobs.summary(tmp_path)["updates"]


def test_a_signal_while_the_ranks_start_ends_them(tmp_path: Path) -> None:
    process = real_jobs.start_words(words(tmp_path, "--ranks=2"))
    waiting.until(lambda: bool(real_jobs.ranks_of(process.pid)))  # mpirun is there
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == EXIT_STOPPED, output
    assert "nothing was lost" in output
    assert "Traceback" not in output


def test_a_job_whose_mpirun_is_ended_has_the_code_of_its_ranks(tmp_path: Path) -> None:
    process = real_jobs.start_words(words(tmp_path, "--ranks=2"))
    waiting.until(lambda: newest_update(tmp_path) >= 10)
    os.kill(child_of(process.pid), signal.SIGTERM)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == EXIT_STOPPED, output


def test_no_job_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    process = real_jobs.start_words(words(tmp_path, "--ranks=2"))
    waiting.until(lambda: newest_update(tmp_path) >= 10)
    mpirun = child_of(process.pid)
    process.kill()
    waiting.until(lambda: not Path(f"/proc/{mpirun}").exists() or is_zombie(mpirun), 30)
    process.communicate(timeout=30)
    assert checkpoint.newest_first(tmp_path / "checkpoints")


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()[0])


def is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    return True


class Terminal:
    """A terminal with a shell's job in it, and what appears there."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self.output = ""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(real_jobs.ROOT)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells ignore it in what they start in the background
            os.execvpe(command[0], command, os.environ | environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(self._master, 10_000):
                self.output += data.decode("utf-8", "replace")

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def end(self) -> int:
        code = waiting.within(60, lambda: os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))
        self._reader.join(5)
        return code


@contextmanager
def makefile(folder: Path) -> Iterator[Path]:
    """The recipe of `make train`, with an environment that is there."""
    text = (real_jobs.ROOT / "Makefile").read_text(encoding="utf-8")
    text = text.replace("train: .venv/installed\n", "train:\n").replace("$(BIN)/python", sys.executable)
    (folder / "Makefile").write_text(text, encoding="utf-8")
    yield folder / "Makefile"


def test_ctrl_c_under_make_is_no_error(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    arguments = " ".join([*real_jobs.TINY, f"--run-dir={run_dir}"])
    with makefile(tmp_path) as file:
        shown = Terminal(["make", "-f", str(file), "train", "RANKS=2", "GAME=pong", f"ARGS={arguments}"])
        waiting.until(lambda: newest_update(run_dir) >= 10, why=lambda: shown.output)
        shown.press_ctrl_c()
        assert shown.end() == EXIT_OK, shown.output
    lines = [line for line in shown.output.splitlines() if line.strip()]
    assert "rerun the same command to resume" in "".join(lines[-3:]), shown.output
    assert "make:" not in shown.output
    assert "╭─ pong · 2 ranks × 2 simulators" in shown.output  # the panel, although mpirun's stderr is a pipe


def test_make_alone_explains_itself() -> None:
    words = ["make", "--no-print-directory"]  # which make prints when another make runs the tests
    shown = subprocess.run(words, cwd=real_jobs.ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("make setup   installs everything into .venv\nmake train ")
    assert "#" not in shown


def test_make_setup_refuses_an_old_python_at_once(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\n[ "$1" != -c ]\n', encoding="utf-8")
    old.chmod(0o755)
    (tmp_path / "Makefile").write_bytes((real_jobs.ROOT / "Makefile").read_bytes())
    for name in ("setup.py", "pyproject.toml"):
        (tmp_path / name).touch()
    result = subprocess.run(
        ["make", "setup", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "Python 3.9.2, and dba3c needs Python 3.11 or newer" in result.stdout
    assert not (tmp_path / ".venv").exists()
