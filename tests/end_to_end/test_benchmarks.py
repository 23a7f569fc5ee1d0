"""Real measurements, short ones: what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dba3c.bench import main
from dba3c.benchmarks import launching, layouts, pipeline, scaling, stragglers
from dba3c.benchmarks.layouts import Allocation
from tests.fakes import real_jobs

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}
# Starting a simulator takes as long as a hundred of its steps, and every measurement starts new ones.
SMALL = ["scaling", "--game=pong", "--env.n_sim=2", "--model.hidden=16"]


def test_a_measured_pipeline_fills_a_row() -> None:
    allocation = Allocation(2, 1, "lockstep", 2)
    summary = layouts.trial(allocation, "pong", "a2c", steps=400)
    row = pipeline.row(allocation, [summary, summary], [MEASURED, MEASURED])
    bound = pipeline.bound(allocation, MEASURED)
    assert row["fraction_of_bound"] == pytest.approx(summary["steps_per_second"] / bound)
    assert row["shares"]["env"] > 0.05
    assert sum(row["shares"].values()) == pytest.approx(1.0)


def test_scaling_on_this_machine(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Started alone, it takes a rank for each core."""
    json_file, picture = tmp_path / "scaling.json", tmp_path / "scaling.png"
    assert main([*SMALL, "--seconds=0.5", "--hidden=32", f"--json={json_file}", f"--plot={picture}"]) == 0
    result = json.loads(json_file.read_text(encoding="utf-8"))
    rows = {(row["scaling"], row["ranks"]): row for row in result["rows"] if row["scaling"] != "alone"}
    cores = launching.cores()
    assert rows.keys() == {(kind, count) for kind in ("weak", "strong") for count in scaling.counts(cores)}
    assert rows["strong", 1]["games_per_rank"] == cores * rows["strong", cores]["games_per_rank"]
    assert all(0 < row["efficiency"] < 1.5 for row in rows.values())
    assert result["hidden"][0]["hidden"] == 32
    assert result["allreduce_milliseconds"]["mpi"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    output = capfd.readouterr().out
    assert all(words in output for words in ("efficiency", "simulators per rank", "samples/s", "hidden units"))


def test_scaling_with_backup_workers(tmp_path: Path) -> None:
    """One rank alone has no backup; the agent of an earlier measurement starts again at the strategy's first update."""
    words = [*SMALL, "--seconds=0.1", f"--json={tmp_path / 'scaling.json'}"]
    assert main([*words, "--comm.strategy=backup", "--comm.n_backup=1"]) == 0
    rows = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["points_per_second"] > 0 for row in rows)


def test_stragglers_slow_equal_ranks_and_a_backup_helps(tmp_path: Path) -> None:
    result = real_jobs.run(8, "-m", "tests.end_to_end.short_stragglers", "0.5", str(tmp_path / "rows.json"))
    assert result.code == 0, result.output
    summary = stragglers.compared(json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"])
    equal, served, slow, helped, free = summary["rows"][:5]
    assert slow["of_equal_ranks"] < 0.6  # a third, and the machine may be busy
    assert helped["of_equal_ranks"] > slow["of_equal_ranks"]
    assert summary["pace_kept"] == helped["of_equal_ranks"]
    assert helped["late_share_by_rank"][3] > 0.5
    assert equal["predicted"] == pytest.approx(equal["updates_per_second"])
    assert served["updates_per_second"] > 2 * equal["updates_per_second"]  # each of the four ranks' gradients is one
    assert free["of_equal_ranks"] > slow["of_equal_ranks"]
    assert summary["rows"][5]["longest_update"] > 0.5  # without a backup all wait for the rank that pauses
