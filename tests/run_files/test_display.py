"""What a user sees of a run while it lasts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from dba3c.run_files.display import Display, duration, rough_duration
from dba3c.run_files.progress import Progress
from dba3c.run_files.window import Window
from tests.fakes.settings import settings
from tests.fakes.updates import update


def shown(display: Display, as_panel: bool) -> str:
    window = Window()
    window.add(update(lag=0.0, env_seconds=0.5))
    figures: dict[str, Any] = window.figures() | {"online_score": 12.34, "online_game_steps": 100.0}
    figures |= {"steps_per_second": 1000.0, "seconds_left": 80_000.0}
    progress = Progress(updates=9, steps=20_000_000, seconds=3661.0, evaluation_score=21.0)
    if not as_panel:
        return display._line(figures, progress)
    output = io.StringIO()
    Console(file=output, width=100).print(display._panel(figures, progress))
    return output.getvalue()


@pytest.mark.parametrize("as_panel", [True, False])
def test_display_tells_what_one_wants_to_know(as_panel: bool) -> None:
    text = shown(Display(settings("train.total_steps=100000000"), ["left", "right"], terminal=None), as_panel)
    for fact in ("1,000 steps/s", "online 12.3", "evaluation 21.0", "20.0%", "22:13:20", "1:01:01"):
        assert fact in text
    assert "slowest rank 1 (right)" in text
    assert text.count("/s") == 1  # one unit of pace


def test_ranks_keep_their_numbers_when_others_have_failed() -> None:
    text = shown(Display(settings(), ["left", "right"], terminal=None, numbers=(0, 3)), as_panel=False)
    assert "slowest rank 3 (right)" in text


def test_duration() -> None:
    assert duration(59.6) == "0:01:00"


def test_what_nobody_can_know_yet_is_not_shown() -> None:
    display = Display(settings(), ["a", "b"], terminal=None)
    text = display._line(early() | {"steps_per_second": None, "seconds_left": None}, Progress(updates=1, steps=40))
    assert "– steps/s" in text
    assert "time left –" in text


def early() -> dict[str, Any]:
    window = Window()
    window.add(update())
    return window.figures() | {"online_score": None, "online_game_steps": None}


def test_an_estimate_is_rough_and_never_absurd() -> None:
    assert rough_duration(47 * 3600) == "1 day, 23:00:00"
    assert rough_duration(6.2 * 24 * 3600) == "6 days"
    assert rough_duration(1e12) == "more than 100 days"
