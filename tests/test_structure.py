"""The rules that keep the code readable: who may import what, and how long things may get."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from dba3c.config import names

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "dba3c"
FILES = sorted(PACKAGE.rglob("*.py"))

SHARED = {"types", "timings", "seeds", "config"}  # everyone may use these
VERBS = {
    "train",
    "evaluate",
    "record",
    "export",
    "report",
    "results",
    "status",
    "bench",
    "sweep",
    "tune",
    "games",
    "show_config",
    "version",
}  # no room and no verb imports one
# Beyond what is shared, each room may use only these.
ALLOWED: dict[str, set[str]] = {
    "envs": set(),
    "networks": set(),
    "comm": set(),
    "job": set(),
    "run_files": set(),
    "learning": {"networks"},
    "actors": {"learning"},  # returns only
    "film": {"envs", "actors"},
    "reporting": {"run_files"},
    "training": {"envs", "networks", "learning", "actors", "comm", "job", "run_files"},
    "sweeps": {"training", "job", "run_files", "reporting"},
    "benchmarks": {"training", "envs", "networks", "learning", "actors", "comm", "job", "run_files"},
}
ROOMS = SHARED | set(ALLOWED)
LIBRARIES = {  # heavy or system libraries and the only rooms that may import them
    "mpi4py": {"comm", "job", "types", "benchmarks"},  # types, benchmarks: the type of a communicator
    "horovod": {"comm"},
    "ale_py": {"envs", "film"},
    "gymnasium": {"envs", "film", "types"},  # types: its spaces
    "cv2": {"envs", "networks"},
    "yaml": {"config"},
    "keras": {"networks"},
}

NOT_ROOMS = {"fakes", "mpi", "end_to_end", "faults", "cluster"}  # folders of tests: fakes, and what starts processes
STARTERS = {"subprocess", "multiprocessing", "tests.fakes.real_jobs"}


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
    """The rooms and verbs of this package that a file imports."""
    parts = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()}
    found = {name.split(".")[1] for name in imported_names(path) if name.startswith("dba3c.")}
    return (found & parts) - {part_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_design(path: Path) -> None:
    part = part_of(path)
    if part in ROOMS:
        assert own_parts(path) <= SHARED | ALLOWED.get(part, set())
    else:
        assert not own_parts(path) & VERBS


def test_every_room_has_its_row() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert rooms <= ROOMS
    assert len(ALLOWED) <= 15


def test_a_room_fits_on_one_look() -> None:
    for room in ROOMS:
        if (PACKAGE / room).is_dir():
            files = [path for path in (PACKAGE / room).glob("*.py") if path.name != "__init__.py"]
            assert 4 <= len(files) <= 10, room


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_is_a_parser_and_little_more(verb: str) -> None:
    assert len((PACKAGE / f"{verb}.py").read_text(encoding="utf-8").splitlines()) <= 100


@pytest.mark.parametrize("name", ["types.py", "training/loop.py", "training/run.py", "run_files/progress.py"])
def test_seams_and_loop_name_no_algorithm(name: str) -> None:
    """A new algorithm must not need an edit there."""
    text = (PACKAGE / name).read_text(encoding="utf-8").lower()
    words = set(re.findall(r"[a-z0-9_]+", text))
    assert not words & {*names.PARTS["algorithm.name"], "advantage", "advantages", "advantage_scale", "entropy"}


@pytest.mark.parametrize("key", sorted(names.PARTS))
def test_every_registered_part_exists(key: str) -> None:
    for name, place in names.PARTS[key].items():
        if name != "horovod" or find_spec("horovod"):
            assert names.find(key, name) is not None, place


def test_actors_know_nothing_of_learning_but_its_returns() -> None:
    used = {name for path in FILES if part_of(path) == "actors" for name in imported_names(path)}
    assert {name for name in used if name.startswith("dba3c.learning.")} <= {"dba3c.learning.returns"} | {
        name for name in used if name.startswith("dba3c.learning.returns.")
    }


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_libraries_stay_where_they_belong(path: Path) -> None:
    used = {name.split(".")[0] for name in imported_names(path)}
    assert not {lib for lib, parts in LIBRARIES.items() if lib in used and part_of(path) not in parts}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
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


def test_each_room_has_its_folder_of_tests() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {path.parent.name for path in TESTS.glob("*/__init__.py")} - NOT_ROOMS == rooms


def test_tests_of_rooms_and_verbs_start_no_processes() -> None:
    """So that `make test-fast` is fast; test_readme.py, which trains, is not part of it."""
    paths = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] not in NOT_ROOMS]
    assert {path.name for path in paths if imported_names(path) & STARTERS} <= {"test_readme.py"}
