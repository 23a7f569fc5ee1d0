"""The cores of a rank: shared fairly, counted once for all hardware threads, and within the container's quota."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.job.cores import UNLIMITED, Place, core_shares, cpu_quota, offered_cores, physical_cores, threads_for


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


def test_a_job_is_offered_what_slurm_and_the_container_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(1000, 1012)))  # nothing is known about them
    monkeypatch.delenv("SLURM_CPUS_ON_NODE", raising=False)
    assert offered_cores(UNLIMITED) == 12
    assert offered_cores(2.5) == 2
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")
    assert offered_cores(UNLIMITED) == 8
