"""Settings for all tests, and the table of faults at their end."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before TensorFlow is imported anywhere: the tests share two cores, and one thread adds up in one order.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"

# Open MPI refuses to run as root unless told, and more ranks than cores.
os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"  # noqa: SIM112
# Ranks that wait must leave the cores to the others, of which there are more than cores.
os.environ["OMPI_MCA_mpi_yield_when_idle"] = os.environ["MPIR_CVAR_CH4_PROGRESS_THROTTLE"] = "1"  # noqa: SIM112

# A shell ignores Ctrl-C in what it starts in the background; the jobs that tests interrupt would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# tests/mpi runs under mpirun only: tests/end_to_end/test_mpi_suite.py starts it at several sizes.
collect_ignore = [] if os.environ.get("DBA3C_UNDER_MPI") else ["mpi"]

Happened = Callable[..., None]
FAULTS_PAGE = """# Faults

What happened in the last run of each test: `make faults` runs all of them, `make faults ARGS='-k disk'` some, whose
rows it replaces; rows that were not run again keep the words and seconds of an earlier run, or of an earlier version.
Ranks are real processes under mpirun; hosts are network namespaces under a real Slurm. Seconds: until the job had ended
or training continued, the longest of several tries. Lost: of the learning.

"""


@pytest.fixture(autouse=True)
def no_job_outlives_its_test() -> Iterator[None]:
    yield
    if real_jobs := sys.modules.get("tests.fakes.real_jobs"):
        real_jobs.end_all()


@pytest.fixture
def happened(record_property: Callable[[str, object], None], request: pytest.FixtureRequest) -> Happened:
    """Enter into the table of faults what became of this one (@pytest.mark.fault(row, what))."""
    row, fault = request.node.get_closest_marker("fault").args

    def enter(outcome: str, seconds: float | None = None, lost: str = "nothing") -> None:
        record_property("fault", (row, fault, outcome, seconds, lost))

    return enter


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(row, what, outcome=None, lost): a row of the table of faults")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Enter the outcome that a marker foretells, if the test has passed."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    marker = item.get_closest_marker("fault")
    if marker and len(marker.args) > 2 and report.when == "call" and report.passed:
        row, fault, what, *lost = marker.args
        report.user_properties.append(("fault", (row, fault, what, None, lost[0] if lost else "nothing")))


def fault_rows(entries: list[Any]) -> list[tuple[str, ...]]:
    """One row for entries that differ in their seconds only, with the longest."""
    longest: dict[tuple[int, str, str, str], float | None] = {}
    for row, fault, outcome, seconds, lost in entries:
        key = (row, fault, outcome, lost)
        longest[key] = seconds if longest.get(key) is None else max(longest[key] or 0.0, seconds or 0.0)
    return [
        (str(row), fault, outcome, "" if seconds is None else f"{seconds:.1f}", lost)
        for (row, fault, outcome, lost), seconds in sorted(longest.items(), key=lambda item: item[0])
    ]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What became of each fault; also into the file that FAULT_TABLE names."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    rows = fault_rows([value for report in reports for name, value in report.user_properties if name == "fault"])
    if not rows:
        return
    table = [("no.", "fault", "what happened", "seconds", "lost"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    terminalreporter.section("faults")
    terminalreporter.line("\n".join(lines))
    if "FAULT_TABLE" in os.environ:
        write_page(Path(os.environ["FAULT_TABLE"]), rows)


def write_page(path: Path, rows: list[tuple[str, ...]]) -> None:
    """Write the table of faults; rows that are not among these stay as they are."""
    fresh = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    again = {row[:2] for row in fresh}
    kept = [row for row in earlier_rows(path) if row[:2] not in again]
    body = sorted([*fresh, *kept], key=lambda row: (int(row[0]), *row[1:]))
    table = [("no.", "fault", "what happened", "seconds", "lost"), ("---",) * 5, *body]
    text = "\n".join("| " + " | ".join(row) + " |" for row in table)
    path.write_text(f"{FAULTS_PAGE}{text}\n", encoding="utf-8")


def earlier_rows(path: Path) -> list[tuple[str, ...]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines if line[:1] == "|"]
    return [row for row in rows if row[0].isdigit()]


def pytest_unconfigure() -> None:
    """Take away the names of shared memory that MPI leaves behind where a test has started it in this process."""
    if "mpi4py.MPI" in sys.modules:
        from dba3c.job.world import unname_shared_memory

        unname_shared_memory(sys.modules["mpi4py.MPI"].COMM_SELF.Dup())
