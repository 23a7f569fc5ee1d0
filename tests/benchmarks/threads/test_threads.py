"""One rank of several cores beside ranks of one core."""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from pathlib import Path
from threading import Event, Thread

import pytest

from dba3c.benchmarks import launching, layouts, threads
from dba3c.benchmarks.launching import Bar, show
from dba3c.benchmarks.layouts import Allocation

OPTIONS = Namespace(game="pong", preset="a2c", seconds=1.0, repeats=2, simulators=8, steps=5)


def test_all_layouts_make_updates_of_one_size() -> None:
    tried = threads.allocations(4, 8, 5)
    assert {allocation.steps_per_update for allocation in tried} == {160}
    shards = [next((word for word in one.arguments if "shards" in word), "") for one in tried]
    assert shards == ["", "--actor.shards=4", "--actor.shards=8"]


@pytest.mark.parametrize(("held", "words"), [(0.05, ("5.0%", "40 cores would need")), (None, ("pip install py-spy",))])
def test_layouts_take_turns_and_ratios_are_those_of_a_round(
    held: float | None, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turns: list[int] = []

    def trial(allocation: Allocation, _game: str, _preset: str, steps: int) -> dict[str, float]:
        turns.append(allocation.ranks * 10 + allocation.shards_per_core)
        pace = 1000.0 * (1 if len(turns) < 5 else 2) * (1.0 if allocation.ranks > 1 else 0.9)  # a noisy second round
        assert steps == (0 if len(turns) == 1 else 1000)
        return {"steps_per_second": pace, "memory_mb_per_rank": 600 if allocation.ranks > 1 else 700}

    monkeypatch.setattr(launching, "cores", lambda: 2)
    monkeypatch.setattr(layouts, "trial", trial)
    monkeypatch.setattr(threads, "lock_share", lambda *_: held)
    result = threads.measure(OPTIONS, Bar(disable=True))
    assert turns == [21, 21, 11, 12, 12, 11, 21]
    assert [row["ratio"] for row in result["rows"]] == pytest.approx([1.0, 0.9, 0.9])
    assert result["memory"] == {"cores": 12, "ranks_of_one_core": 7200, "one_rank": 1700}
    show(threads.table(result))
    output = capsys.readouterr().out
    assert all(word in output for word in (*words, "7,200 MB in ranks of one core", "0.900"))


@pytest.mark.skipif(shutil.which(threads.PY_SPY) is None, reason="py-spy is not installed")
@pytest.mark.parametrize(("asleep", "least", "most"), [(0.0, 0.3, 1.1), (0.05, 0.0, 0.2)])
def test_the_lock_is_held_by_who_computes_in_python(asleep: float, least: float, most: float, tmp_path: Path) -> None:
    over = Event()

    def work() -> None:
        while not over.wait(asleep):
            sum(range(10**5 if not asleep else 1))

    thread = Thread(target=work)
    thread.start()
    share = threads.sampled(os.getpid(), 2, tmp_path / "samples")
    over.set()
    thread.join()
    assert least <= share <= most
