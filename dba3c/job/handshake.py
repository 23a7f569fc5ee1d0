"""The check before any simulator starts that all ranks run the same program, and the table of where they run."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Protocol, TypeVar

import dba3c
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.job.cores import Place, core_shares, threads_for

T = TypeVar("T")
MOST_HOSTS = 6  # names of hosts in a row of the layout or in a message
MOST_DIFFERENCES = 4  # differences in a message
MANY_CORES = 4  # of a host: if ranks that are bound to one core each use at most half of them, that is hardly meant


class Comm(Protocol):
    """What the check needs of an MPI communicator."""

    def allgather(self, sendobj: T) -> list[T]: ...


def facts(config: Config, environment: dict[str, str]) -> dict[str, str]:
    """Return what must be the same on every rank, or the ranks would not compute the same weights."""
    versions = {
        "dba3c": dba3c.__version__,
        "Python": platform.python_version(),
        "TensorFlow": version("tensorflow-cpu", "tensorflow"),
        "ale-py": version("ale-py"),
        "NumPy": version("numpy"),
    }
    settings = {name: str(value) for name, value in config.flat().items()}
    return versions | environment | settings


def version(*names: str) -> str:
    """Return the version of the first of these distributions that is installed."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "not installed"


def refuse_differences(every: list[dict[str, str]], hosts: list[str]) -> None:
    """Raise ConfigError if the ranks' facts differ; the message says which ranks have which values."""
    keys = dict.fromkeys(key for facts in every for key in facts)
    differences = [key for key in keys if len({facts.get(key) for facts in every}) > 1]
    if differences:
        values = [who_has_what(key, [facts.get(key, "missing") for facts in every], hosts) for key in differences]
        more = f" and {len(values) - MOST_DIFFERENCES} more" if len(values) > MOST_DIFFERENCES else ""
        raise ConfigError(
            f"the ranks differ in {'; '.join(values[:MOST_DIFFERENCES])}{more};"
            " give all ranks the same options, files and environment"
        )


def who_has_what(key: str, values: list[str], hosts: list[str]) -> str:
    """Format one difference, the most common value first: `key: 1 on ranks 0-2, 2 on rank 3 (host)`."""
    holders: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        holders.setdefault(value, []).append(rank)
    common, *others = sorted(holders.items(), key=lambda item: -len(item[1]))
    rest = [f"{value} on {ranks_as_text(ranks)} ({names([hosts[r] for r in ranks])})" for value, ranks in others]
    return f"{key}: {common[0]} on {ranks_as_text(common[1])}, {', '.join(rest)}"


def ranks_as_text(ranks: list[int]) -> str:
    """Format ranks in ascending order: `rank 3`, `ranks 0-2, 5`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' * (len(ranks) > 1)} {text}"


def names(hosts: list[str]) -> str:
    """Format the different hosts, at most MOST_HOSTS of them by name."""
    different = list(dict.fromkeys(hosts))
    more = len(different) - MOST_HOSTS
    return ", ".join(different[:MOST_HOSTS]) + (f" and {more} more" if more > 0 else "")


def layout(places: list[Place], n_sim: int, numbers: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table of the job, with one row for hosts that are alike, and warnings about it.

    `numbers` are the ranks' numbers when the job started, if others have failed since.
    """
    shares = core_shares(places)
    ranks_of: dict[str, list[int]] = {}
    for rank, place in enumerate(places):
        ranks_of.setdefault(place.host, []).append(rank)
    rows: dict[tuple[int, str], list[str]] = {}
    for host, ranks in ranks_of.items():
        cores = sorted({threads_for(shares[rank]) for rank in ranks})
        cores_each = "-".join(str(count) for count in dict.fromkeys((cores[0], cores[-1])))
        rows.setdefault((len(ranks), cores_each), []).append(host)
    lines = [f"{'hosts':>5} {'ranks each':>11} {'cores per rank':>15} {'simulators per rank':>20}"]
    for (ranks_each, cores_each), hosts in rows.items():
        lines.append(f"{len(hosts):5} {ranks_each:11} {cores_each:>15} {n_sim:20}  {names(hosts)}")
    return lines + crowded(places, numbers) + idle(places)


def crowded(places: list[Place], numbers: Sequence[int] = ()) -> list[str]:
    """Return one warning for each host on which a rank has less than a core."""
    warnings: dict[str, str] = {}
    for rank, place, share in zip(numbers or range(len(places)), places, core_shares(places), strict=True):
        if share < 0.99 and place.host not in warnings:
            warnings[place.host] = (
                f"{place.host}: rank {rank} shares its core with other ranks ({share:.2f} of a core is its share) and"
                " slows all ranks down; start fewer ranks there, bind each rank to its own core (mpirun --bind-to core,"
                " srun --cpus-per-task), or at least let waiting ranks yield the core (OMPI_MCA_mpi_yield_when_idle=1)"
            )
    return list(warnings.values())


def idle(places: list[Place]) -> list[str]:
    """Return a warning if ranks may use one core each while many others of their hosts are left idle."""
    hosts: list[str] = []
    for host in dict.fromkeys(place.host for place in places):
        here = [place for place in places if place.host == host]
        used = {core for place in here for core in place.cores}
        bound = any(len(place.cores) == 1 for place in here)
        if bound and here[0].offered >= max(MANY_CORES, 2 * len(used)):
            hosts.append(f"{host} ({len(used)} of {here[0].offered} cores in use)")
    if not hosts:
        return []
    return [
        f"ranks may use one core each, and most of the job's cores are idle, on {names(hosts)}; start a rank for each"
        " core (srun --ntasks-per-node, mpirun -np), or give each rank more of them (export SRUN_CPUS_PER_TASK for"
        " srun, mpirun --bind-to none)"
    ]


def check(comm: Comm, config: Config, environment: dict[str, str], hosts: list[str]) -> None:
    """Compare the facts of all ranks, on every rank; ConfigError on all of them if they differ.

    Digests are compared first: the facts themselves would be megabytes on every rank of a large job.
    """
    mine = facts(config, environment)
    digest = hashlib.sha256(repr(mine).encode()).digest()
    if len(set(comm.allgather(digest))) > 1:
        refuse_differences(comm.allgather(mine), hosts)
