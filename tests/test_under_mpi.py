"""Runs tests/mpi on 1, 2, 3 and 4 real ranks, over each transport."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import jobs


@pytest.mark.parametrize(("ranks", "transport"), [(1, "mpi"), (2, "mpi"), (3, "mpi"), (4, "mpi"), (2, "horovod")])
def test_suite(ranks: int, transport: str) -> None:
    if transport == "horovod" and find_spec("horovod") is None:
        pytest.skip("Horovod is not installed (make horovod)")
    variables = {"DBA3C_UNDER_MPI": "1", "DBA3C_TRANSPORT": transport}
    result = jobs.run(ranks, "-m", "pytest", "-q", "-x", "tests/mpi", seconds=240, **variables)
    assert result.code == 0, result.output
    assert result.output.count(" passed") == ranks, result.output


@pytest.fixture(scope="module")
def mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that adds the MPICH wheel to this one, before whose MPI it is found."""
    folder = tmp_path_factory.mktemp("mpich")
    venv.create(folder, with_pip=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "base.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    install = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "mpich>=5,<6",
    ]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        pytest.skip("the mpich wheel cannot be installed")
    return folder / "bin"


def test_suite_with_mpich(mpich: Path) -> None:
    words = [str(mpich / "mpiexec"), "-n", "4", str(mpich / "python"), "-m", "pytest", "-q", "-x", "tests/mpi"]
    result = jobs.run_words(words, seconds=240, DBA3C_UNDER_MPI="1")
    assert result.code == 0, result.output
    assert result.output.count(" passed") == 4, result.output
