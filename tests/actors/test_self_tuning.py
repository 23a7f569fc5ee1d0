"""GA3C's dynamic adjustment against paces that are known."""

from __future__ import annotations

import pytest

from dba3c.actors import self_tuning
from dba3c.actors.self_tuning import Adjustment, Crew, SelfTuning, crew_of
from dba3c.types import Batch
from tests.actors.async_scene import settings

MOST = {"agents": 32, "predictors": 8, "trainers": 8}
BEST = {"agents": 12, "predictors": 2, "trainers": 3}


def pace(crew: Crew) -> float:
    """Batches per second: a hill with one top, as few threads leave cores idle and many are in each other's way."""
    return 100.0 - sum((4.0 if name != "agents" else 0.5) * abs(crew[name] - best) for name, best in BEST.items())


def walk(crew: Crew, windows: int, seed: int, seconds: float = 10.0) -> list[str]:
    """Let so many windows go by on a clock that runs as the pace says; return what was told."""
    adjustment, now, told = Adjustment(crew, MOST, seconds, seed), 0.0, []
    while now < windows * seconds:
        now += 1 / pace(crew)
        told.append(adjustment.trained(now))
    return [line for line in told if line]


@pytest.mark.parametrize("seed", range(3))
def test_it_climbs_to_the_top_from_one_of_each(seed: int) -> None:
    crew = {"agents": 1, "predictors": 1, "trainers": 1}
    walk(crew, 200, seed)
    assert pace(crew) > 0.9 * pace(BEST)


def test_a_move_that_slows_the_training_is_undone() -> None:
    crew = dict(BEST)
    told = walk(crew, 60, 0)
    assert any("undone" in line for line in told)
    assert all("undone" in line or " → " in line for line in told)
    assert sum(abs(crew[name] - best) for name, best in BEST.items()) <= 1  # the move that is being tried


def test_numbers_stay_within_their_limits() -> None:
    crew = {"agents": 1, "predictors": 1, "trainers": 1}
    adjustment, now = Adjustment(crew, dict.fromkeys(crew, 2), 1.0, 0), 0.0
    for _ in range(2000):
        now += 0.1
        adjustment.trained(now)  # no move changes the pace, so all are kept
        assert all(1 <= count <= 2 for count in crew.values())
    fixed = {"agents": 1}
    still = Adjustment(fixed, {"agents": 1}, 1.0, 0)
    assert not any(still.trained(0.1 * step) for step in range(100))
    assert fixed == {"agents": 1}


def test_a_window_that_was_interrupted_judges_nothing() -> None:
    crew = {"agents": 5}
    adjustment = Adjustment(crew, MOST, 1.0, 0)
    for step in range(25):  # the first window warms up, the second measures
        assert not adjustment.trained(0.1 * step)
    tried = dict(crew)
    assert tried != {"agents": 5}
    assert not adjustment.trained(60.0)  # an evaluation
    assert crew == tried


def test_slow_batches_take_as_long_as_they_need() -> None:
    crew = {"agents": 5}
    adjustment = Adjustment(crew, MOST, 1.0, 0)
    told = [adjustment.trained(3.0 * step) for step in range(17)]  # five batches a window: the third judges a move
    assert [bool(line) for line in told] == [False] * 15 + [True, False]
    assert "0.33 → 0.33 batches/s, kept" in told[15]


def test_the_first_window_which_compiles_is_not_counted() -> None:
    crew = {"agents": 5}
    adjustment = Adjustment(crew, MOST, 1.0, 0)
    for step in range(11):
        assert not adjustment.trained(0.12 * step)
    assert crew == {"agents": 5}


class Stream:
    """An actor whose batches are nothing."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def restart(self, update: int) -> None:
        self.calls.append(f"restart {update}")

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Batch | None:
        self.calls.append("next")
        return None

    def close(self) -> None:
        self.calls.append("close")


def test_the_actor_plays_on_while_its_crew_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(self_tuning.time, "perf_counter", lambda: now[0])
    config = settings(8, 2, 5, 20, "actor.self_tuning=true", "actor.tuning_seconds=1", "actor.agents=2")
    assert crew_of(config) == {"agents": 2, "predictors": 1, "trainers": 1}
    said: list[str] = []
    stream, crew = Stream(), crew_of(config)
    actor = SelfTuning(config, stream, crew, said.append)
    actor.restart(3)
    for _ in range(100):
        now[0] += 0.1
        next(actor)
    actor.close()
    assert stream.calls == ["restart 3", *100 * ["next"], "close"]
    assert actor.crew is crew
    assert crew != crew_of(config)
    assert said
    assert all(line.startswith("self-tuning: ") and line.endswith(("kept", "undone")) for line in said)


def test_all_groups_play_unless_told_otherwise() -> None:
    assert crew_of(settings(8, 2, 5, 20))["agents"] == 4
