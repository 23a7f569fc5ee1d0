"""Libraries that a job loads before the C library, to make its disks or clocks misbehave."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def compiled(source: str, folder: Path) -> str:
    """The value of LD_PRELOAD for a C file of this folder; the test is skipped without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = folder / source.replace(".c", ".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, Path(__file__).with_name(source), "-ldl"], check=True)
    return str(library)
