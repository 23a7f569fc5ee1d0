"""Clocks that jump: whatever is measured or waited for is measured by the monotonic clock."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults.preloading import compiled

OPTIONS = ("--train.total_steps=800", "--comm.silence_seconds=5", "--train.log_every_seconds=0.2")


@pytest.mark.fault(27, "the wall clock jumps by a day, again and again")
def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, happened: Happened) -> None:
    jumping = real_jobs.train(2, tmp_path / "jumping", *OPTIONS, LD_PRELOAD=compiled("jumping_clock.c", tmp_path))
    assert jumping.code == 0, jumping.output
    assert "silent" not in jumping.output
    steady = real_jobs.train(2, tmp_path / "steady", *OPTIONS)
    assert steady.code == 0, steady.output
    hashes = [real_jobs.summary(tmp_path / name)["weight_hash"] for name in ("jumping", "steady")]
    assert hashes[0] == hashes[1]
    with (tmp_path / "jumping" / "metrics.csv").open(encoding="utf-8") as file:
        seconds = [float(row["seconds"]) for row in csv.DictReader(file)]
    assert all(0 <= after - before < 60 for before, after in itertools.pairwise([0.0, *seconds]))
    stamps = {line[:10] for line in (tmp_path / "jumping" / "log.txt").read_text(encoding="utf-8").splitlines()}
    assert len(stamps) > 1  # the clock did jump
    happened("no false alarm, times in metrics.csv only grow, weights equal those of a steady clock")
