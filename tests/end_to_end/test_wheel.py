"""The wheel and the source archive: what they hold, and that the installed package trains outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import dba3c
from tests.fakes.real_jobs import ROOT

SCRIPTS = {path.name for path in (ROOT / "slurm").iterdir()}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both from a copy of the files that git knows, as a fresh clone has them."""
    folder = tmp_path_factory.mktemp("archives")
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    changed = subprocess.run(
        ["git", "ls-files", "-mo", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in changed.stdout.decode().split():  # not yet committed
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((ROOT / name).read_bytes())
    script = f"from setuptools import build_meta as b; b.build_sdist({str(folder)!r}); b.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=clone, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_all_that_the_commands_need(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    data = f"dba3c-{dba3c.__version__}.data/data/share/dba3c/slurm/"
    assert {name.removeprefix(data) for name in names if name.startswith(data)} == SCRIPTS
    assert {"dba3c/hyperparams.yaml", "dba3c/agents/pong.npz", "dba3c/py.typed", "dba3c/reporting/page.css"} <= names
    assert not {name for name in names if name.startswith(("tests", "docs"))}
    assert wheel.stat().st_size < 10e6


def test_the_source_archive_can_build_the_wheel_again(archives: Path, tmp_path: Path) -> None:
    (source,) = archives.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for name in (
        "hyperparams.yaml",
        "dba3c/hyperparams.yaml",
        "slurm/train.sbatch",
        "docs/python.md",
        "tests/conftest.py",
    ):
        assert (folder / name).is_file(), name
    script = f"from setuptools import build_meta as b; b.build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)
    (first,), (again,) = archives.glob("*.whl"), tmp_path.glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(first).namelist())


def test_the_files_of_the_container_s_recipe_are_enough_to_install(archives: Path, tmp_path: Path) -> None:
    """The image itself cannot be built where there is no Apptainer."""
    recipe = (ROOT / "slurm" / "dba3c.def").read_text(encoding="utf-8")
    for line in recipe.partition("%files\n")[2].partition("\n\n")[0].splitlines():
        name, target = line.split()
        assert target == f"/opt/dba3c/{name}"
        source = archives / "clone" / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)
        else:
            shutil.copy(source, tmp_path / name)
    script = f"from setuptools import build_meta as b; b.build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    (first,), (again,) = archives.glob("*.whl"), tmp_path.glob("*.whl")
    without_slurm = {name for name in zipfile.ZipFile(first).namelist() if "/share/dba3c/slurm/" not in name}
    assert set(zipfile.ZipFile(again).namelist()) == without_slurm


def test_the_installed_package_trains_outside_the_checkout(archives: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    (wheel,) = archives.glob("*.whl")
    libraries = sysconfig.get_paths()["purelib"]
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    # The libraries of this environment, but not its link to the checkout: a .pth file there is not read.
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    where = subprocess.run(
        [python, "-c", "import dba3c; print(dba3c.__file__)"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)
    words = ["train", "catch", "--train.total_steps=800", "--evaluate.games=1", "--run-dir=run"]
    result = subprocess.run(
        [tmp_path / "env" / "bin" / "dba3c", *words],
        cwd=tmp_path,
        env=os.environ | {"LD_LIBRARY_PATH": f"{sys.prefix}/lib"},  # where MPI is, as a site's module says
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run" / "summary.json").is_file()
    assert (tmp_path / "env" / "share" / "dba3c" / "slurm" / "train.sbatch").is_file()
