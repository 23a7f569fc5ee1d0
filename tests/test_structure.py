"""The rules that keep the code readable: who may import what, and how long things may get."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "dba3c"
FILES = sorted(PACKAGE.rglob("*.py"))

# Anyone may use these; they know nothing of the rest.
FOUNDATION = {"types", "config", "sections", "seeds"}
# Beyond the foundation, each part may use only these. Entry points build everything and are not listed.
ALLOWED = {
    "types": set(),
    "schedules": set(),
    "sections": {"schedules"},
    "config": {"sections"},
    "seeds": {"types"},
    "cores": set(),
    "handshake": {"cores", "envs"},
    "launch": {"cores"},
    "envs": set(),
    "agreement": set(),
    "debug": set(),
    "faults": set(),
    "guard": set(),
    "saving": {"agent", "checkpoint", "optimizers"},
    "returns": set(),
    "flat": set(),
    "graph": set(),
    "models": {"flat"},
    "algorithms": {"returns", "schedules"},
    "agent": {"algorithms", "graph", "models"},
    "optimizers": {"graph", "schedules"},
    "comm": {"flat"},
    "rollout": {"returns"},
    "actor": {"rollout"},
    "async_actor": {"rollout"},
    "evaluation": set(),
    "checkpoint": set(),
    "display": set(),
    "metrics": {"checkpoint", "display"},
    "pace": set(),
    "published": set(),
    "logs": set(),
    "recipe": set(),
    "replay": set(),
    "film": set(),
    "pretrained": {"checkpoint", "envs"},
    "report": {"checkpoint", "cli", "launch", "logs", "published", "recipe"},
    "results": {"checkpoint", "cli", "logs", "published", "recipe", "report"},
    "trainer": {"agent"},
}
LIBRARIES = {  # heavy or system libraries and the only parts that may import them
    "mpi4py": {"comm", "launch"},
    "horovod": {"comm"},
    "ale_py": {"envs", "replay"},
    "gymnasium": {"envs", "replay"},
    "cv2": {"envs"},
    "yaml": {"config", "sections"},
    "keras": {"models"},
}
WITHOUT_TENSORFLOW = [
    "__main__", "cli", "comm", "config", "cores", "envs", "evaluate", "evaluation", "export", "faults", "guard",
    "handshake", "launch", "logs", "pretrained", "record", "report.figures", "report.page", "results", "sections",
    "seeds", "train", "trainer", "types",
]  # fmt: skip
WITHOUT_MPI = [
    "__main__",
    "bench",
    "cli",
    "evaluate",
    "export",
    "launch",
    "record",
    "report",
    "results",
    "train",
    "tune",
]


def part_of(path: Path) -> str:
    """The part of the design that a file belongs to: its folder, or its own name."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_parts(path: Path) -> set[str]:
    """The parts of this package that a file imports."""
    parts = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()}
    found = {name.split(".")[1] for name in imported_names(path) if name.startswith("dba3c.")}
    return (found & parts) - {part_of(path)}


@pytest.mark.parametrize("path", [f for f in FILES if part_of(f) in ALLOWED], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_design(path: Path) -> None:
    assert own_parts(path) <= FOUNDATION | ALLOWED[part_of(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_libraries_stay_where_they_belong(path: Path) -> None:
    used = {name.split(".")[0] for name in imported_names(path)}
    assert not {lib for lib, parts in LIBRARIES.items() if lib in used and part_of(path) not in parts}


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
    return subprocess.run(words, cwd=PACKAGE.parent, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def test_no_tensorflow_is_loaded() -> None:
    assert first_to_load("tensorflow", WITHOUT_TENSORFLOW) == ""


def test_no_mpi_is_started() -> None:
    """mpi4py.MPI starts MPI when it is imported: --help must work without, and launch tells what is missing."""
    assert first_to_load("mpi4py.MPI", WITHOUT_MPI) == ""


def test_what_is_loaded_is_noticed() -> None:
    assert first_to_load("yaml", ["types", "config", "cli"]) == "config"


def test_help_is_quick() -> None:
    """Half a second is promised; a loaded machine gets twice that, TensorFlow would take four."""
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "dba3c", "--help"], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert time.perf_counter() - start < 1.0
    assert all(command in result.stdout for command in ("train", "evaluate", "bench"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_sizes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno + 1 <= 40, node.name


def test_most_functions_are_short() -> None:
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    assert sum(length <= 20 for length in lengths) / len(lengths) > 0.85
