"""Memory that runs out: the kernel kills the largest process of the job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs, waiting
from tests.faults.four_ranks import loadable, newest_update

LIMIT = 3 * 2**30  # bytes
KILLED = 137
HOG = """if True:
    import pathlib, sys, time
    taken, rank = [], pathlib.Path(f"/proc/{sys.argv[1]}/statm")
    while rank.exists() and rank.read_text().split()[1] != "0":
        taken.append(b"x" * 2**24)
        time.sleep(0.002)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group whose processes have little memory together."""
    membership = Path("/proc/self/cgroup").read_text(encoding="utf-8").split()
    own = next((line.split(":", 2)[2] for line in membership if ":memory:" in line), None)
    folder = Path("/sys/fs/cgroup/memory", (own or "").lstrip("/"), f"dba3c-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT), encoding="ascii")
    except OSError as error:
        pytest.skip(f"no control group of memory can be made here: {error}")
    yield folder
    waiting.until(lambda: not (folder / "cgroup.procs").read_text(encoding="ascii"), 30)
    folder.rmdir()


def start(group: Path, words: list[str]) -> subprocess.Popen[str]:
    return real_jobs.start_words(["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *words])


@pytest.mark.fault(22, "memory runs out")
def test_a_rank_that_is_killed_for_its_memory_is_reported_as_such(
    tmp_path: Path, group: Path, happened: Happened
) -> None:
    words = [sys.executable, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path}", "--ranks=2"]
    job = start(group, words)
    waiting.until(lambda: newest_update(tmp_path) >= 10)
    ranks = [pid for launcher in real_jobs.children(job.pid) for pid in real_jobs.ranks_of(launcher)]
    assert len(ranks) == 2
    since = time.monotonic()
    Path(f"/proc/{ranks[1]}/oom_score_adj").write_text("1000", encoding="ascii")  # this one, not the other program
    hog = start(group, [sys.executable, "-c", HOG, str(ranks[1])])
    output, _ = job.communicate(timeout=180)
    took = time.monotonic() - since
    hog.communicate(timeout=30)
    assert job.returncode == KILLED, output
    assert "rank 1 with PID" in output
    assert output.count("the kernel has killed a rank because memory ran out") == 1, output
    assert "--env.n_sim" in output
    assert loadable(tmp_path) >= 10
    happened("all ended, code 137, a line names memory as the cause and the remedy", took, "at most 10 updates")
