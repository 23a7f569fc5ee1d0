"""Figures of the updates since the last row: sums become means, shares and scores."""

from __future__ import annotations

import pytest

from dba3c.run_files.window import OnlineScore, Window
from tests.fakes.updates import update


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
    shares = window.figures()
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
