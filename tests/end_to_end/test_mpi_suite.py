"""Runs tests/mpi on 1, 2, 3 and 4 real ranks, over each transport and both kinds of MPI."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fakes import real_jobs

SUITE = ("-m", "pytest", "-q", "-x", "tests/mpi")


@pytest.mark.parametrize(("ranks", "transport", "sizes"), [(4, "mpi", "1,2,3,4"), (2, "horovod", "2")])
def test_suite(ranks: int, transport: str, sizes: str) -> None:
    """One job for all sizes, because its ranks take longer to start than to test."""
    if transport == "horovod" and find_spec("horovod") is None:
        pytest.skip("Horovod is not installed (make horovod)")
    variables = {"DBA3C_UNDER_MPI": "1", "DBA3C_TRANSPORT": transport, "DBA3C_SIZES": sizes}
    result = real_jobs.run(ranks, *SUITE, seconds=400, **variables)
    assert result.code == 0, result.output
    assert result.output.count(" passed") == ranks, result.output


@pytest.fixture(scope="module")
def mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that adds the MPICH wheel to this one, before whose MPI it is found."""
    folder = tmp_path_factory.mktemp("mpich")
    venv.create(folder)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "base.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--ignore-installed", "mpich>=5,<6"]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        pytest.skip("the mpich wheel cannot be installed")
    return folder / "bin"


def test_suite_with_mpich(mpich: Path) -> None:
    words = [str(mpich / "mpiexec"), "-n", "4", str(mpich / "python"), *SUITE]
    result = real_jobs.run_words(words, seconds=400, DBA3C_UNDER_MPI="1")
    assert result.code == 0, result.output
    assert result.output.count(" passed") == 4, result.output
