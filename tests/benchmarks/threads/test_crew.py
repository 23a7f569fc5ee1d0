"""GA3C's adjustment beside a grid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dba3c.benchmarks.launching import show
from dba3c.benchmarks.threads import crew
from dba3c.benchmarks.threads.crew import against, grid_of, pace, table, walk

MOST = {"agents": 8, "predictors": 8, "trainers": 8}


def clock(numbers: dict[str, int]) -> Iterator[float]:
    """Batches on a clock of their own: ten times as many per second as there are agents, at most 40."""
    now = 0.0
    while True:
        now += 0.1 / min(numbers["agents"], 4)
        yield now


def test_pace_is_batches_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew.time, "perf_counter", lambda: 0.0)
    assert pace(clock({"agents": 2}), 10.0) == pytest.approx(20.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_ends_with_what_was_kept(seed: int) -> None:
    numbers = {"agents": 7, "predictors": 7, "trainers": 7}
    told = walk(clock(numbers), numbers, MOST, 2.0, 60, seed)
    assert len(told) == 60
    assert told[0].split(":")[0].split(" ")[1] == "1"
    assert numbers["agents"] >= 4  # beyond, nothing gets slower, so such moves stay, too


def test_the_grid_has_no_more_agents_than_there_are() -> None:
    assert {numbers["agents"] for numbers in grid_of(MOST)} == {1, 2, 4, 8}
    assert len(grid_of(MOST)) == 16


def test_two_crews_take_turns(capsys: pytest.CaptureFixture[str]) -> None:
    turns: list[int] = []

    def measured(numbers: dict[str, int]) -> float:
        turns.append(numbers["agents"])
        return float(numbers["agents"])

    end, best = dict.fromkeys(MOST, 3), dict.fromkeys(MOST, 4)
    assert against(measured, end, best) == 0.75
    assert turns == [3, 4] * crew.ROUNDS
    walks = [{"end": end, "moves": ["a", "b"], "ratio": 0.75}]
    rows = [best | {"batches_per_second": 20.0}]
    show(table({"game": "pong", "batch": 40, "grid": rows, "best": best, "walks": walks}))
    output = capsys.readouterr().out
    assert "from 1/1/1 in 2 moves to 3/3/3: 0.75 of the pace of 4/4/4" in output
    assert "800" in output
