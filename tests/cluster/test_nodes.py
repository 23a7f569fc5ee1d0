"""What the scripts in slurm/ do for nodes with several cores, several networks and disks of their own."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.cluster import slurm
from tests.cluster.commands import ended, sbatch, wait_for
from tests.fakes import real_jobs

pytestmark = pytest.mark.usefixtures("cluster")
SHORT = (*real_jobs.TINY, "--train.total_steps=640")


def finished(log: Path, *arguments: str, **variables: str) -> str:
    """Train by slurm/train.sbatch, and return its log."""
    job = sbatch("train.sbatch", log, *SHORT, *arguments, RUN_DIR=str(log.parent / "run"), **variables)
    wait_for(lambda: ended(job), log)
    return log.read_text(encoding="utf-8")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment of few files, which finds the packages and the MPI library of this one."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "these.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for library in Path(sys.prefix, "lib").iterdir():
        if not (folder / "lib" / library.name).exists():
            (folder / "lib" / library.name).symlink_to(library)
    return folder


def test_cpus_per_task_of_sbatch_reach_every_rank(tmp_path: Path) -> None:
    """Since Slurm 22.05 srun does not inherit them, and the nodes bind: a rank would have a single core."""
    log = tmp_path / "log"
    job = slurm.command(
        "sbatch", "--parsable", f"--output={log}", "--cpus-per-task=2", "--nodes=2", "slurm/train.sbatch", *SHORT,
        PYTHON=sys.executable, RUN_DIR=str(tmp_path / "run"), SLURM_CPU_BIND="cores",
    ).stdout.strip()  # fmt: skip
    wait_for(lambda: ended(job), log)
    row = re.search(r"^ +2 +1 +(\d+) ", log.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None, log.read_text(encoding="utf-8")
    assert row[1] == "2"  # cores per rank


def test_the_environment_is_staged_on_the_nodes_disks(tmp_path: Path, environment: Path) -> None:
    disk = slurm.FOLDER / "local"
    text = finished(tmp_path / "log", PYTHON=str(environment / "bin" / "python"), STAGE=str(disk))
    assert f"staged {environment} in {disk}/dba3c-" in text, text
    assert "done after" in text, text
    assert environment.with_name("environment.tar").stat().st_size > 10_000
    assert [list(slurm.FOLDER.glob(f"local-{node}/*")) for node in slurm.NODES] == [[]] * 4  # it was removed


def test_what_is_no_environment_is_not_staged(tmp_path: Path) -> None:
    text = finished(tmp_path / "log", PYTHON="/usr/bin/env", STAGE=str(slurm.FOLDER / "local"))
    assert "/usr/bin/env is not in a virtual environment" in text
    assert not (tmp_path / "run").exists()


def test_mpi_keeps_to_the_network_that_it_is_given(tmp_path: Path) -> None:
    """Every node also has an interface that leads nowhere, as container engines leave them."""
    for node in slurm.NODES:
        slurm.sh("ip", "-n", slurm.namespace(node), "link", "add", "docker0", "type", "bridge")
        slurm.sh("ip", "-n", slurm.namespace(node), "address", "add", "10.77.200.1/24", "dev", "docker0")
        slurm.sh("ip", "-n", slurm.namespace(node), "link", "set", "docker0", "up")
    try:
        text = finished(tmp_path / "log", NETWORK="eth0")
    finally:
        for node in slurm.NODES:
            slurm.sh("ip", "-n", slurm.namespace(node), "link", "delete", "docker0")
    assert "done after" in text, text


def test_a_network_that_does_not_exist_is_told_once(tmp_path: Path) -> None:
    text = finished(tmp_path / "log", NETWORK="ib7", MAX_RESTARTS="0")
    assert text.count("MPI cannot reach the other ranks") == 1, text
    assert "Traceback" not in text, text
    assert not (tmp_path / "run").exists()
