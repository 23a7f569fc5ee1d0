"""Figures of the updates since the last row: sums become means, shares and scores."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.run_files.window import OnlineScore, Pace, SegmentPace, TimeLeft, Window
from dba3c.types import Update
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


def test_shares_are_parts_of_all_ranks_time() -> None:
    window = Window()
    window.start -= 10.0  # ten seconds of two ranks
    window.add(update(env_seconds=5.0, gradient_seconds=10.0))
    shares = window.figures()
    assert shares["env_share"] == pytest.approx(0.25, rel=0.01)
    assert shares["gradient_share"] == pytest.approx(0.5, rel=0.01)
    assert shares["wait_share"] == 0


def test_time_that_began_before_the_window_makes_no_share_larger_than_one() -> None:
    """An update brings the seconds of the whole segment before it, however short the window."""
    window = Window()
    window.start -= 10.0  # ten seconds of two ranks
    window.add(update(env_seconds=10.0, wait_seconds=30.0))
    shares = window.figures()
    assert (shares["env_share"], shares["wait_share"]) == (0.25, 0.75)


def test_online_score_is_the_mean_of_the_newest_hundred_games() -> None:
    online = OnlineScore()
    assert online.figures() == {"online_score": None, "online_game_steps": None}
    online.add(update(episodes=50.0, score=50.0 * 1000, episode_steps=50.0 * 7))
    for _ in range(10):
        online.add(update(episodes=10.0, score=10.0 * 3, episode_steps=10.0 * 200))
        online.add(update())  # no game ended
    assert online.figures() == {"online_score": 3.0, "online_game_steps": 200.0}


def ppo_updates(segments: int) -> list[tuple[float, Update]]:
    """Segments of 100 steps: one second of play, then three passes of a second each; without the last two passes."""
    first = [(4.0 * number + 2, update(samples=200, env_seconds=1.0)) for number in range(segments)]
    rest = [(seconds + more, update(samples=200)._replace(steps=0)) for seconds, _ in first for more in (1, 2)]
    return sorted(first + rest, key=lambda item: item[0])[:-2]


def test_pace_is_that_of_whole_segments() -> None:
    """After any update, and also if the run ends after the first pass over the last segment: 100 steps in 4 s."""
    pace = SegmentPace()
    for seconds, one in ppo_updates(5):
        pace.add(one, seconds)
        assert pace.value in (None, 25.0)
    assert pace.value == 25.0


def test_a_row_without_a_new_segment_keeps_the_pace_of_the_one_before() -> None:
    pace = SegmentPace()
    for seconds, one in ppo_updates(5):
        pace.add(one, seconds)
        before = pace.value
        pace.renew()  # as if each update had a row of its own
        assert pace.value == before
    assert before == 25.0


def test_an_evaluation_does_not_count() -> None:
    pace = SegmentPace()
    for seconds, one in ppo_updates(3):
        pace.add(one, seconds)
    pace.interrupt()
    for seconds, one in ppo_updates(3):
        pace.add(one, seconds + 1000.0)
    assert pace.value == 25.0


def test_nothing_is_said_about_the_time_left_before_it_is_known() -> None:
    left = TimeLeft(10_000)
    assert left.seconds(100, 50.0) is None
    assert left.seconds(200, 60.0) is None
    assert left.seconds(600, 100.0) == pytest.approx(9400 / 10)  # 500 steps in 50 s


def test_shares_of_a_whole_run_are_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first update's application, which compiles for 5 s, is told by the second one."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pace = Pace()
    for number, apply_seconds in enumerate((0.0, 5.0, 0.1, 0.1), 1):
        now += 1.0
        pace.count(update(number, env_seconds=0.5, apply_seconds=apply_seconds), 0.0)
        pace.resume()
    figures = pace.figures(1)
    assert figures["shares"]["apply"] == pytest.approx(0.1)
    assert figures["shares"]["other"] == pytest.approx(0.4)
    assert figures["steps_per_second"] == pytest.approx(20.0)


def test_shares_of_a_few_updates_add_up_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second update waited for 5 s, which the third one tells."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pace = Pace()
    for number, wait_seconds in enumerate((0.0, 0.0, 5.0), 1):
        now += 1.0
        pace.count(update(number, env_seconds=0.5, wait_seconds=wait_seconds), 0.0)
        pace.resume()
    shares = pace.figures(1)["shares"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["other"] == pytest.approx(0.0)


def test_a_row_shows_the_crew_at_its_end() -> None:
    window = Window()
    for agents in (3.0, 4.0):
        one = update(1)
        window.add(one._replace(by_rank=one.by_rank | {"agents": np.array([agents]), "trainers": np.array([2.0])}))
    figures = window.figures()
    assert (figures["agents"], figures["trainers"]) == (4.0, 2.0)
    assert "predictors" not in figures


def test_staleness_is_averaged_over_the_gradients_of_each_rank() -> None:
    pace, window = Pace(), Window()
    for number, (rank, staleness) in enumerate([(0, 1.0), (1, 4.0), (0, 2.0)], 1):
        mine = np.arange(2) == rank
        one = update(number, seconds=tuple(mine * 1.0), staleness=40 * staleness)
        one = one._replace(by_rank=one.by_rank | {"staleness": mine * staleness})
        pace.count(one, 0.0)
        window.add(one)
    assert pace.figures(2)["staleness_by_rank"] == [1.5, 4.0]
    assert window.figures()["staleness"] == pytest.approx(7 / 3)
