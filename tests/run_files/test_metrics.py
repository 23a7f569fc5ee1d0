"""The files of a run: rows, events and summary, which go on where they were."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from dba3c.run_files.metrics import COLUMNS, RunMetrics, open_csv
from dba3c.run_files.progress import Progress
from tests.fakes.settings import settings
from tests.fakes.updates import update


def test_csv_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    writer = open_csv(path, 0)
    for number in (10, 20, 30):
        writer.writerow([number if name == "updates" else "" for name in COLUMNS])
    open_csv(path, 20).writerow([25 if name == "updates" else "" for name in COLUMNS])
    assert [row["updates"] for row in csv.DictReader(path.open())] == ["10", "20", "25"]


def test_a_run_writes_rows_events_and_summary(tmp_path: Path) -> None:
    progress = Progress(updates=3, steps=120, seconds=1.5)
    metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e-9"), progress, ["a", "b"], 4, terminal=None)
    metrics.update(update(3, episodes=2.0, score=9.0, episode_steps=60.0, entropy=40.0), progress)
    progress.evaluated(7.0, 50, full=True, target=None)
    metrics.evaluated(5, progress)
    metrics.close({"steps": 120})
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    assert [(row["steps"], row["online_score"], row["evaluation_score"]) for row in rows] == [
        ("120", "4.5", ""),
        ("120", "4.5", "7"),
    ]
    assert '"online_score": 4.5' in (tmp_path / "summary.json").read_text(encoding="utf-8")
    assert next(tmp_path.glob("events.out.tfevents.*")).stat().st_size > 100


@pytest.mark.parametrize(
    "text",
    [
        "damaged\n1,2,3\n", "\0\0\0\n10,20\n", "", "a,b\n" + "x" * 200_000 + ",1\n", "updates,updates\n1,2\n",
        "\"updates", "seconds,steps\n1,2\n",
    ],
)  # fmt: skip
def test_a_damaged_table_is_set_aside_and_a_new_one_begun(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text, encoding="utf-8")
    told: list[str] = []
    open_csv(path, 20, told.append).writerow([25 if name == "updates" else "" for name in COLUMNS])
    assert [row["updates"] for row in csv.DictReader(path.open())][-1:] == ["25"]
    assert path.read_text(encoding="utf-8").startswith("seconds,updates,steps,")
    if told:
        assert "metrics.csv.damaged" in told[0]
        assert (tmp_path / "metrics.csv.damaged").read_text(encoding="utf-8") == text


def test_bytes_that_are_no_text_are_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"\xff\xfe\x00" * 100)
    told: list[str] = []
    open_csv(path, 20, told.append)
    assert len(told) == 1


@pytest.mark.parametrize("cell", ["", "x", "1e", "9" * 5000, "nan", "-inf"])
def test_a_row_without_its_number_is_left_out(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(f"seconds,updates\n1,10\n2,{cell}\n3\n3,20\n4,30,7\n", encoding="utf-8")
    told: list[str] = []
    open_csv(path, 20, told.append)
    assert [row["updates"] for row in csv.DictReader(path.open())] == ["10", "20"]
    assert not told


def test_a_fifo_in_its_place_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.csv")
    with pytest.raises(OSError, match="No such device"):
        open_csv(tmp_path / "metrics.csv", 20)
