"""What the launcher gives: cores are shared fairly, the container's quota counts, signals are seen at once."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dba3c.job.cores import UNLIMITED, Place, core_shares, cpu_quota, physical_cores, threads_for
from dba3c.job.process import quiet_stderr


@pytest.mark.parametrize(
    ("places", "threads"),
    [
        ([("a", [0, 1, 2, 3], UNLIMITED)], [4]),  # alone on a host
        ([("a", [0], UNLIMITED), ("a", [1], UNLIMITED)], [1, 1]),  # bound, a core each
        ([("a", [0, 1, 2, 3], UNLIMITED)] * 2, [2, 2]),  # unbound ranks share
        ([("a", [0, 1], UNLIMITED)] * 4, [1, 1, 1, 1]),  # more ranks than cores
        ([("a", [0, 1], UNLIMITED), ("b", [0, 1], UNLIMITED)], [2, 2]),  # the same numbers on another host
        ([("a", [0, 1, 2, 3], 2.0)], [2]),  # a container that may use two of four cores
        ([("a", [0, 1, 2, 3], 2.0)] * 2, [1, 1]),
        ([("a", [0, 1], UNLIMITED), ("a", [1, 2], UNLIMITED)], [1, 1]),  # half a core is none
    ],
)
def test_cores_are_shared(places: list[tuple[str, list[int], float]], threads: list[int]) -> None:
    named = [Place(*place) for place in places]
    assert [threads_for(share) for share in core_shares(named)] == threads


@pytest.mark.parametrize(("text", "cores"), [("max 100000", UNLIMITED), ("150000 100000", 1.5), ("", UNLIMITED)])
def test_quota_of_version_2(tmp_path: Path, text: str, cores: float) -> None:
    """The job's cgroup lies in the user's, which may grant less."""
    (tmp_path / "membership").write_text("0::/user/job\n", encoding="ascii")
    (tmp_path / "user" / "job").mkdir(parents=True)
    (tmp_path / "user" / "job" / "cpu.max").write_text(text, encoding="ascii")
    assert cpu_quota(tmp_path / "membership", tmp_path) == cores
    (tmp_path / "user" / "cpu.max").write_text("100000 100000", encoding="ascii")
    assert cpu_quota(tmp_path / "membership", tmp_path) == 1.0
    assert cpu_quota(tmp_path / "missing", tmp_path) == UNLIMITED


@pytest.mark.parametrize(("quota", "cores"), [("-1", UNLIMITED), ("250000", 2.5)])
def test_quota_of_version_1(tmp_path: Path, quota: str, cores: float) -> None:
    (tmp_path / "membership").write_text("4:memory:/job\n3:cpu,cpuacct:/job\n", encoding="ascii")
    (tmp_path / "cpu" / "job").mkdir(parents=True)
    (tmp_path / "cpu" / "job" / "cpu.cfs_quota_us").write_text(f"{quota}\n", encoding="ascii")
    (tmp_path / "cpu" / "job" / "cpu.cfs_period_us").write_text("100000\n", encoding="ascii")
    assert cpu_quota(tmp_path / "membership", tmp_path) == cores


def test_hardware_threads_of_a_core_count_once(tmp_path: Path) -> None:
    for cpu, siblings in enumerate(("0,4", "1,5", "2,6", "3,7") * 2):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings, encoding="ascii")
    assert physical_cores(set(range(8)), tmp_path) == [0, 1, 2, 3]
    assert physical_cores({5, 6, 1}, tmp_path) == [1, 6]
    assert physical_cores({8, 9}, tmp_path) == [8, 9]  # nothing is known about them


def test_a_signal_calls_at_once_even_while_the_main_thread_is_away() -> None:
    """The main thread sleeps in one long call, as it does inside a gradient or an all-reduce."""
    script = """if True:
        import ctypes, os, signal, threading, time
        from dba3c.job.signals import StopSignal
        called = threading.Event()
        stop = StopSignal(called.set)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        threading.Thread(target=lambda: print("called" if called.wait(2) else "late", flush=True)).start()
        libc, until = ctypes.CDLL(None), time.monotonic() + 3
        while time.monotonic() < until:
            libc.poll(None, 0, 3000)  # outside the interpreter, where Python's own handlers cannot run
        print(bool(stop))
    """
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["called", "True"]


def test_a_second_signal_leaves_at_once() -> None:
    script = """if True:
        import os, signal, time
        from dba3c.job.signals import StopSignal
        stop = StopSignal()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # a launcher may pass the same signal on twice
        assert stop
        time.sleep(1.1)
        os.kill(os.getpid(), signal.SIGINT)
        print("still here")
    """
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (128 + signal.SIGINT, "")


def test_the_terminal_of_a_launcher_is_found() -> None:
    """A child whose stderr is a pipe finds the terminal of its parent's stderr."""
    child = "from dba3c.job.process import terminal; print(terminal().name)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    master, slave = pty.openpty()
    result = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, stderr=slave, text=True, check=True)
    assert result.stdout.strip() == os.ttyname(slave)
    os.close(master)
    os.close(slave)


def test_no_terminal_in_a_batch_job() -> None:
    child = "from dba3c.job.process import terminal; print(terminal())"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    result = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"


def test_quiet_stderr_hides_only_while_it_lasts(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_stderr():
        os.write(2, b"noise")
    os.write(2, b"news")
    assert capfd.readouterr().err == "news"
