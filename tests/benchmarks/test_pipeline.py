"""The whole trainer as a fraction of what its parts allow."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from dba3c.benchmarks import launching, parts, pipeline
from dba3c.benchmarks.launching import Bar, show
from dba3c.benchmarks.layouts import Allocation
from dba3c.config.messages import ConfigError

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}


def test_the_bound_is_cores_over_the_sum_of_the_parts() -> None:
    assert pipeline.bound(Allocation(2, 1, "lockstep", 16), MEASURED) == pytest.approx(2e6 / 750)
    assert pipeline.bound(Allocation(1, 4, "lockstep", 16), MEASURED) == pytest.approx(4e6 / 750)


def test_layouts_that_give_a_core_the_same_work_share_their_parts() -> None:
    assert Allocation(2, 1, "lockstep", 32, 20).sizes == Allocation(1, 2, "lockstep", 64, 20).sizes
    assert Allocation(2, 1, "lockstep", 32, 20).sizes != Allocation(2, 1, "lockstep", 16, 20).sizes


def test_layouts_take_turns_after_their_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each round measures the parts again; the best row is the result's own."""
    turns: list[str] = []
    summary = {"steps_per_second": 1000.0, "shares": {"env": 0.6, "wait": 0.4, "apply": 0.0}}
    monkeypatch.setattr(launching, "cores", lambda: 2)
    monkeypatch.setattr(parts, "preset_row", lambda *_: turns.append("parts") or MEASURED)
    monkeypatch.setattr(pipeline, "trial", lambda *words: turns.append(words[0].kind) or summary)
    options = Namespace(game="pong", preset="fast", seconds=1.0, repeats=2, against=None)
    result = pipeline.measure(options, Bar(disable=True))
    assert turns == 2 * (3 * ["parts"] + ["lockstep", "lockstep", "lockstep", "async", "lockstep"])
    assert result["steps_per_second"] == 1000.0
    show(pipeline.table(result))
    output = capsys.readouterr().out
    assert all(words in output for words in ("training pong", "16 simulators", "60%", "1,000-1,000"))
    assert "apply" not in output


def test_another_checkout_takes_turns_with_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial(*words: object) -> dict[str, object]:
        here = words[-1] is None
        turns.append(here)
        return {"steps_per_second": 1000.0 if here else 800.0, "shares": {"env": 1.0}}

    turns: list[bool] = []
    (tmp_path / "dba3c").mkdir()
    (tmp_path / "dba3c" / "train.py").touch()
    monkeypatch.setattr(parts, "preset_row", lambda *_: MEASURED)
    monkeypatch.setattr(pipeline, "trial", trial)
    options = Namespace(game="pong", preset="fast", seconds=1.0, repeats=2, against=tmp_path)
    result = pipeline.measure(options, Bar(disable=True))
    assert turns == [True, False] * 2 * len(result["rows"])
    assert [row["against"] for row in result["rows"]] == [1.25] * len(result["rows"])
    show(pipeline.table(result))
    assert "1.250" in capsys.readouterr().out


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    options = Namespace(game="pong", preset="fast", seconds=1.0, repeats=2, against=tmp_path)
    with pytest.raises(ConfigError, match="no checkout of dba3c"):
        pipeline.measure(options, Bar(disable=True))
