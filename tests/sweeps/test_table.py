"""What a sweep shows, on a terminal and in a log file."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from dba3c.sweeps.plan import Training
from dba3c.sweeps.queue import FAILED, FINISHED, RUNNING, Ended, Queue, last_line, slots
from dba3c.sweeps.table import SweepTable
from tests.fakes.made_up_runs import ended, row, write_run
from tests.sweeps.test_plan import planned


def watched(tmp_path: Path, terminal: bool) -> str:
    """The output of a sweep of three: one finishes, one fails, one has been finished before."""
    trainings: list[Training] = planned(tmp_path, "games: pong\nseeds: 3")
    queue, output = Queue(trainings, 2, 0, tmp_path / "logs"), io.StringIO()
    queue.states["pong-2"] = FINISHED
    with SweepTable(trainings, queue, Console(file=output, force_terminal=terminal, width=120)) as table:
        queue.states["pong-0"] = queue.states["pong-1"] = RUNNING
        rows = [row(3, evaluation_score=19.5, evaluation_games=50)]
        write_run(trainings[0].run_dir, rows, ended(rows), ("train.total_steps=30k", "env.game=pong"))
        table.refresh()
        queue.states["pong-0"], queue.states["pong-1"] = FINISHED, FAILED
        queue.failures.append(Ended(trainings[1], 5, "dba3c: rank 0\x07 is\n lost", Path("logs/pong-1.log")))
        table.refresh()
    return output.getvalue()


def test_a_log_file_gets_a_line_for_each_change(tmp_path: Path) -> None:
    assert watched(tmp_path, terminal=False).splitlines() == [
        "3 trainings, 1 of them finished before",
        "pong-0: running",
        "pong-1: running",
        "pong-0: finished, score 19.5",
        "pong-1: failed",
        "pong-1: exit code 5: dba3c: rank 0� is lost; logs/pong-1.log",
        "2 finished, 1 failed",
    ]


def test_a_terminal_shows_a_table_and_then_the_failures(tmp_path: Path) -> None:
    before, end = watched(tmp_path, terminal=True).rsplit("time left", 1)
    assert "running" in before
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", end)
    lines = [line.split() for line in plain.splitlines() if line.strip()]
    rows = {words[0]: words for words in lines if words[0].startswith("pong-") and not words[0].endswith(":")}
    assert rows["pong-0"] == ["pong-0", "finished", "30,000", "of", "30,000", "100%", "19.5", "–", "–"]
    assert rows["pong-1"] == ["pong-1", "failed", *["–"] * 5]
    assert lines[-1] == ["2", "finished,", "1", "failed"]


def test_trainings_divide_the_cores_or_share_all_of_them() -> None:
    everything = set.union(*slots(1))
    for jobs in range(1, len(everything) + 1):
        parts = slots(jobs)
        assert len(parts) == jobs
        assert sum(map(len, parts)) == len(set.union(*parts)) == len(everything)
    assert all(len(part) >= len(everything) for part in slots(len(everything) + 1))


def test_the_last_line_is_the_last_that_says_something(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert "No such file" in last_line(file)
    file.write_bytes(b"first\nlast one \n\n  \n")
    assert last_line(file) == "last one"
    file.write_bytes(b"\n")
    assert last_line(file) == "it has said nothing"
