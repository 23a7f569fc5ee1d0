"""The cores that a rank may use, by its CPU affinity and its cgroup, and their division among the ranks of a host."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

UNLIMITED = float("inf")


class Place(NamedTuple):
    """Where one rank runs."""

    host: str
    cores: list[int]  # one hardware thread of each core that the rank may use
    quota: float  # CPU time that its cgroup grants, in cores
    offered: int = 0  # cores of the host that the job may use, by this or other ranks; 0: unknown


def place(host: str) -> Place:
    """Return the place of this process, which runs on `host`."""
    quota = cpu_quota()
    return Place(host, physical_cores(os.sched_getaffinity(0)), quota, offered_cores(quota))


def offered_cores(quota: float) -> int:
    """Return how many cores of this host the job may use, however its ranks are bound; 0 if that is unknown."""
    try:
        everything = physical_cores(os.sched_getaffinity(1))  # the first process is bound by its container alone
    except OSError:
        return 0
    allocated = os.environ.get("SLURM_CPUS_ON_NODE", "")
    return int(min(len(everything), quota, int(allocated) if allocated.isdecimal() else UNLIMITED))


def core_shares(places: list[Place]) -> list[float]:
    """Return how many cores each rank gets if ranks that may use the same cores share them fairly."""
    ranks_on_core = Counter((place.host, core) for place in places for core in place.cores)
    ranks_on_host = Counter(place.host for place in places)
    return [
        min(sum(1 / ranks_on_core[place.host, core] for core in place.cores), place.quota / ranks_on_host[place.host])
        for place in places
    ]


def threads_for(share: float) -> int:
    """Return how many threads a rank with this share of the cores can keep busy."""
    return max(1, int(share + 1e-9))


def physical_cores(cpus: set[int], sysfs: Path = Path("/sys/devices/system/cpu")) -> list[int]:
    """Return one hardware thread of each core: two on the same core are no faster than one at this work."""
    cores: dict[str, int] = {}
    for cpu in sorted(cpus):
        siblings = sysfs / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        name = siblings.read_text(encoding="ascii").strip() if siblings.exists() else str(cpu)
        cores.setdefault(name, cpu)
    return list(cores.values())


def cpu_quota(membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the least CPU quota of this process's cgroup and its ancestors, in cores; infinite if none is set."""
    try:
        lines = membership.read_text(encoding="ascii").splitlines()
    except OSError:
        return UNLIMITED
    quotas = [UNLIMITED]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # cgroup version 2
            quotas += [quota_of(folder / "cpu.max") for folder in with_ancestors(root, path)]
        elif "cpu" in controllers.split(","):
            folders = with_ancestors(root / "cpu", path)
            quotas += [quota_of(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us") for folder in folders]
    return min(quotas)


def with_ancestors(root: Path, path: str) -> list[Path]:
    """Return the folder of a cgroup and those of its ancestors."""
    folder = root / path.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]


def quota_of(*files: Path) -> float:
    """Return quota ÷ period, which version 2 keeps in one file and version 1 in two; infinite if not set."""
    try:
        quota, period = " ".join(file.read_text(encoding="ascii") for file in files).split()[:2]
        return UNLIMITED if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError):
        return UNLIMITED


def processor() -> str:
    """Return the model of this machine's processor."""
    try:
        models = re.findall(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        models = []
    return models[0] if models else platform.processor() or platform.machine()
