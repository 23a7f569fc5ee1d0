"""What a fresh interpreter loads: no TensorFlow and no MPI before they are needed, and help that is quick."""

from __future__ import annotations

import subprocess
import sys
import time

from dba3c.__main__ import COMMANDS
from tests.fakes.real_jobs import ROOT

WITHOUT_TENSORFLOW = [
    "__main__", "actors.asynchronous", "actors.lockstep", "actors.single_episodes", "bench", "comm", "config.loading",
    "envs", "evaluate", "export", "job.exit", "job.handshake", "learning.returns", "record", "report",
    "reporting.figures", "reporting.html", "results", "run_files.logs", "run_files.trained_agents", "seeds", "train",
    "training.injected", "training.loop", "tune", "types",
]  # fmt: skip
WITHOUT_MPI = ["__main__", "comm", "training.injected", *COMMANDS, "job.exit", "job.world"]


def first_to_load(library: str, modules: list[str]) -> str:
    """The first of our modules whose import brings a library with it, or nothing."""
    check = f"""if True:
        import importlib, sys
        for module in {modules}:
            importlib.import_module(f"dba3c.{{module}}")
            if {library!r} in sys.modules:
                print(module)
                break
    """
    words = [sys.executable, "-c", check]
    return subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def test_no_tensorflow_is_loaded() -> None:
    assert first_to_load("tensorflow", WITHOUT_TENSORFLOW) == ""


def test_no_mpi_is_started() -> None:
    """mpi4py.MPI starts MPI when it is imported: --help must work without, and job/world.py tells what is missing."""
    assert first_to_load("mpi4py.MPI", WITHOUT_MPI) == ""


def test_what_is_loaded_is_noticed() -> None:
    assert first_to_load("yaml", ["types", "config.loading", "train"]) == "config.loading"


def test_help_is_quick() -> None:
    """Half a second is promised; a loaded machine gets twice that, TensorFlow would take four."""
    start = time.perf_counter()
    words = [sys.executable, "-m", "dba3c", "--help"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert time.perf_counter() - start < 1.0
    assert all(command in result.stdout for command in COMMANDS)


def test_report_runs_without_tensorflow() -> None:
    check = (
        "import sys; from dba3c.__main__ import main; main(['report', 'nowhere']); print('tensorflow' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr.startswith("dba3c: nowhere")) == ("False\n", True)
