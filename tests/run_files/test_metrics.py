"""The files of a run: rows, events and summary, which go on where they were."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import tensorflow as tf

from dba3c.run_files.metrics import RunMetrics
from dba3c.run_files.progress import Progress
from tests.fakes.settings import settings
from tests.fakes.updates import update


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


def test_a_run_that_is_shorter_than_the_interval_has_a_row_too(tmp_path: Path) -> None:
    progress = Progress(updates=3, steps=120)
    metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e6"), progress, ["a", "b"], 4, terminal=None)
    metrics.update(update(3), progress)
    metrics.close(None)
    assert [row["steps"] for row in csv.DictReader((tmp_path / "metrics.csv").open())] == ["120"]


def test_rows_keep_the_numbers_of_ranks_when_others_have_failed(tmp_path: Path) -> None:
    every = settings("train.log_every_seconds=1e-9")
    metrics = RunMetrics(tmp_path, every, Progress(), ["a", "b"], 4, terminal=None, numbers=(2, 5))
    metrics.update(update(3), Progress())
    assert next(csv.DictReader((tmp_path / "metrics.csv").open()))["slowest_rank"] == "5"


def test_files_that_were_removed_begin_anew(tmp_path: Path) -> None:
    progress = Progress(updates=3, steps=120)
    metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e-9"), progress, ["a", "b"], 4, terminal=None)
    metrics.update(update(3), progress)
    for path in tmp_path.iterdir():
        path.unlink()
    metrics.open_files(progress)
    progress.updates = 4
    metrics.update(update(4), progress)
    metrics.close(None)
    assert [row["updates"] for row in csv.DictReader((tmp_path / "metrics.csv").open())] == ["4"]
    assert list(tmp_path.glob("events.out.tfevents.*"))


def events(folder: Path) -> set[str]:
    """The tags of the events in a folder."""
    return {
        value.tag
        for file in folder.glob("events.out.tfevents.*")
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }


def test_own_figures_of_a_loss_are_logged_everywhere(tmp_path: Path) -> None:
    progress = Progress(updates=3, steps=120, seconds=1.5)
    log = io.StringIO()
    metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e-9"), progress, ["a", "b"], 4, terminal=log)
    metrics._shown -= 10
    metrics.update(update(3, samples=40, surprise=10.0, entropy=40.0), progress)
    metrics.close(None)
    (row,) = csv.DictReader((tmp_path / "metrics.csv").open())
    assert (row["surprise"], row["entropy"]) == ("0.25", "1")
    assert row["policy_loss"] == ""  # this loss has none
    tags = events(tmp_path)
    assert {"loss/surprise", "loss/entropy", "time/env_share", "comm/dropped", "run/frames"} <= tags
    assert any("hparams" in tag for tag in tags)
    assert "surprise 0.25" in log.getvalue()


def test_a_resumed_run_says_so_once(tmp_path: Path) -> None:
    for before in (0, 5):
        progress = Progress(updates=before, steps=before * 20)
        metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e-9"), progress, ["a", "b"], 4, terminal=None)
        for number in (before + 1, before + 2):
            progress.updates = number
            metrics.update(update(number), progress)
        metrics.close(None)
    rows = csv.DictReader((tmp_path / "metrics.csv").open())
    assert [(row["updates"], row["resumed"]) for row in rows] == [("1", ""), ("2", ""), ("6", "1"), ("7", "")]
