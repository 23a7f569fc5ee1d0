"""Two checkouts on one machine, each with a cluster of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import slurm

pytestmark = pytest.mark.usefixtures("cluster")
ONE_JOB = "from tests.cluster import slurm; print(slurm.command('srun', '-N1', 'printenv', 'SLURM_JOB_ID').stdout)"


def test_the_cluster_of_another_checkout_stands_beside_this_one(tmp_path: Path) -> None:
    shutil.copytree(slurm.ROOT / "tests" / "cluster", tmp_path / "tests" / "cluster")
    (tmp_path / "tests" / "__init__.py").touch()

    def there(*words: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "DBA3C_CLUSTER_NODES": "1"}
        result = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    there("-m", "tests.cluster.slurm", "up")
    try:
        jobs = {int(there("-c", ONE_JOB)), int(slurm.command("srun", "-N1", "printenv", "SLURM_JOB_ID").stdout)}
        assert len(jobs) == 2
    finally:
        there("-m", "tests.cluster.slurm", "down")
    slurm.wait_until_idle(30)
