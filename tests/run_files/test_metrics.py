"""The files of a run: rows, events and summary, which go on where they were."""

from __future__ import annotations

import csv
from pathlib import Path

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
