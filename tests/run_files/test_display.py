"""What a user sees of a run while it lasts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from dba3c.run_files.display import Display, duration
from dba3c.run_files.progress import Progress
from dba3c.run_files.window import Window
from tests.fakes.settings import settings
from tests.fakes.updates import update


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
    text = shown(Display(settings("train.total_steps=100000000"), ["left", "right"], 4, terminal=None), as_panel)
    for fact in ("1,000 steps/s", "4,000 frames/s", "online 12.3", "evaluation 21.0", "20.0%", "22:13:20", "1:01:01"):
        assert fact in text
    assert "slowest rank 1 (right)" in text


def test_duration() -> None:
    assert duration(59.6) == "0:01:00"
