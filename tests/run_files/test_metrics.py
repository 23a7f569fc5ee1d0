"""Figures of a run: sums become means, shares and scores; files go on where they were."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dba3c.run_files.display import Display, duration
from dba3c.run_files.metrics import COLUMNS, RunMetrics, open_csv
from dba3c.run_files.window import OnlineScore, Window
from dba3c.types import PARTS, Progress, Update
from tests.fakes.settings import settings


def update(number: int = 1, samples: int = 40, seconds: tuple[float, ...] = (1.0, 2.0), **sums: float) -> Update:
    figures = {"episodes": 0.0, "score": 0.0, "episode_steps": 0.0} | {f"{part}_seconds": 0.0 for part in PARTS} | sums
    by_rank = {"compute_seconds": np.array(seconds), "max_lag": np.array([0.0, float(number)])}
    return Update(number, samples, samples // 2, True, False, figures, by_rank)


def test_window_gives_means_per_data_point_and_names_the_slowest_rank() -> None:
    window = Window()
    window.start -= 10.0
    window.add(update(1, samples=40, entropy=80.0, lag=40.0))
    window.add(update(2, samples=60, entropy=20.0, lag=10.0, seconds=(5.0, 0.5)))
    figures = window.figures()
    assert figures["entropy"] == pytest.approx(1.0)
    assert figures["lag"] == pytest.approx(0.5)
    assert figures["max_lag"] == 2
    assert figures["slowest_rank"] == 0  # 6 s against 2.5 s
    assert figures["points_per_second"] == pytest.approx(10.0, rel=0.01)
    assert figures["steps_per_second"] == pytest.approx(5.0, rel=0.01)  # each was learned from twice


def test_shares_are_parts_of_all_ranks_time() -> None:
    window = Window()
    window.start -= 10.0  # ten seconds of two ranks
    window.add(update(env_seconds=5.0, gradient_seconds=10.0))
    shares = window.shares()
    assert shares["env_share"] == pytest.approx(0.25, rel=0.01)
    assert shares["gradient_share"] == pytest.approx(0.5, rel=0.01)
    assert shares["wait_share"] == 0


def test_online_score_is_the_mean_of_the_newest_hundred_games() -> None:
    online = OnlineScore()
    assert online.figures() == {"online_score": None, "online_game_steps": None}
    online.add(update(episodes=50.0, score=50.0 * 1000, episode_steps=50.0 * 7))
    for _ in range(10):
        online.add(update(episodes=10.0, score=10.0 * 3, episode_steps=10.0 * 200))
        online.add(update())  # no game ended
    assert online.figures() == {"online_score": 3.0, "online_game_steps": 200.0}


def test_csv_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    writer = open_csv(path, 0)
    for number in (10, 20, 30):
        writer.writerow([number if name == "updates" else "" for name in COLUMNS])
    open_csv(path, 20).writerow([25 if name == "updates" else "" for name in COLUMNS])
    assert [row["updates"] for row in csv.DictReader(path.open())] == ["10", "20", "25"]


def test_a_run_writes_rows_events_and_summary(tmp_path: Path) -> None:
    progress = Progress(updates=3, steps=120, seconds=1.5)
    metrics = RunMetrics(tmp_path, settings("train.log_every_seconds=1e-9"), progress, ["a", "b"], terminal=None)
    metrics.update(update(3, episodes=2.0, score=9.0, episode_steps=60.0, entropy=40.0), progress)
    progress.evaluated(7.0, full=True, target=None)
    metrics.evaluated(5, progress)
    metrics.close({"steps": 120})
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    assert [(row["steps"], row["online_score"], row["evaluation_score"]) for row in rows] == [
        ("120", "4.5", ""),
        ("120", "4.5", "7"),
    ]
    assert '"online_score": 4.5' in (tmp_path / "summary.json").read_text(encoding="utf-8")
    assert next(tmp_path.glob("events.out.tfevents.*")).stat().st_size > 100


def test_only_a_full_evaluation_reaches_the_target() -> None:
    progress = Progress()
    for score, full, reached in ((400.0, False, False), (299.0, True, False), (300.0, True, True), (10.0, True, False)):
        progress.evaluated(score, full, target=300.0)
        assert progress.target_reached is reached
    assert (progress.evaluation_score, progress.best_score) == (10.0, 400.0)


def shown(display: Display, as_panel: bool) -> str:
    window = Window()
    window.add(update(lag=0.0, env_seconds=0.5))
    figures: dict[str, Any] = window.figures() | {"online_score": 12.34, "online_game_steps": 100.0}
    figures["steps_per_second"] = 1000.0
    progress = Progress(updates=9, steps=20_000_000, seconds=3661.0, evaluation_score=21.0)
    if not as_panel:
        return display._line(figures, progress)
    output = io.StringIO()
    Console(file=output, width=100).print(display._panel(figures, progress))
    return output.getvalue()


@pytest.mark.parametrize("as_panel", [True, False])
def test_display_tells_what_one_wants_to_know(as_panel: bool) -> None:
    text = shown(Display(settings("train.total_steps=100000000"), ["left", "right"], terminal=None), as_panel)
    for fact in ("1,000 steps/s", "4,000 frames/s", "online 12.3", "evaluation 21.0", "20.0%", "22:13:20", "1:01:01"):
        assert fact in text
    assert "slowest rank 1 (right)" in text
    assert " samples/s · " in text
    assert ("· 2 ranks × 16 simulators" in text) == as_panel


def test_duration() -> None:
    assert duration(59.6) == "0:01:00"
