"""The algorithm of docs/extending.md on two hosts of a real Slurm, which compare its file before they start."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cluster import slurm
from tests.fakes import real_jobs

pytestmark = pytest.mark.usefixtures("cluster")
PAGE = (real_jobs.ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
OPTIONS = (
    "--preset=catch",
    "--algorithm.name=smooth",
    "--env.n_sim=2",
    "--evaluate.games=0",
    "--train.total_steps=400",
)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    found = re.search(r"```python\n# smooth\.py\n(.*?)```", PAGE, re.DOTALL)
    assert found
    file = tmp_path / "smooth.py"
    file.write_text(found[1], encoding="utf-8")
    return file


def test_a_plug_in_trains_on_two_hosts(tmp_path: Path, plugin: Path) -> None:
    train = (sys.executable, "-m", "dba3c.train", *OPTIONS, f"--run-dir={tmp_path / 'run'}")
    words = ("srun", "--mpi=pmix", "-N2", "-n2", *train, f"--plugin={plugin}", "--algorithm.trace=0.5")
    result = slurm.command(*words, seconds=180)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "node1, node2" in output, output
    summary = real_jobs.summary(tmp_path / "run")
    assert (summary["ranks"], summary["steps"]) == (2, 400)
    assert "trace: 0.5" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
