"""Which cores a rank may use, and how the ranks of a host share them: from affinity and cgroup, never from the host."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

UNLIMITED = float("inf")


class Place(NamedTuple):
    """Where one rank runs."""

    host: str
    cores: list[int]  # that it may use, one processor of each
    quota: float  # cores' worth of time that its cgroup grants


def place(host: str) -> Place:
    return Place(host, physical_cores(os.sched_getaffinity(0)), cpu_quota())


def core_shares(places: list[Place]) -> list[float]:
    """Cores that each rank gets if the ranks of a host that may use the same ones share them fairly."""
    users = Counter((place.host, core) for place in places for core in place.cores)
    neighbours = Counter(place.host for place in places)
    return [
        min(sum(1 / users[place.host, core] for core in place.cores), place.quota / neighbours[place.host])
        for place in places
    ]


def threads_for(share: float) -> int:
    """Threads that a rank with so many cores can keep busy."""
    return max(1, int(share + 1e-9))


def physical_cores(cpus: set[int], sysfs: Path = Path("/sys/devices/system/cpu")) -> list[int]:
    """One processor of each core: two hardware threads of a core are no faster than one at what we do."""
    cores: dict[str, int] = {}
    for cpu in sorted(cpus):
        siblings = sysfs / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        name = siblings.read_text(encoding="ascii").strip() if siblings.exists() else str(cpu)
        cores.setdefault(name, cpu)
    return list(cores.values())


def cpu_quota(membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float:
    """Cores that this process's cgroup and the cgroups around it grant; infinite where nothing is said."""
    try:
        lines = membership.read_text(encoding="ascii").splitlines()
    except OSError:
        return UNLIMITED
    quotas = [UNLIMITED]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            quotas += [quota_of(folder / "cpu.max") for folder in around(root, path)]
        elif "cpu" in controllers.split(","):
            quotas += [quota_of(f / "cpu.cfs_quota_us", f / "cpu.cfs_period_us") for f in around(root / "cpu", path)]
    return min(quotas)


def around(root: Path, path: str) -> list[Path]:
    """The folder of a cgroup and those that it lies in."""
    folder = root / path.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]


def quota_of(*files: Path) -> float:
    """Quota ÷ period, which stand in one file or in two."""
    try:
        quota, period = " ".join(file.read_text(encoding="ascii") for file in files).split()[:2]
        return UNLIMITED if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError):
        return UNLIMITED
