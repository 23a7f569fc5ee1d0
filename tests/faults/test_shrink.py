"""A failed rank that the others survive: mpirun --with-ft ulfm and comm.on_failure=shrink."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.faults import four_ranks
from tests.faults.four_ranks import FAULT_TOLERANT, HOST

STEPS = 1600
SHRINK = ("--comm.on_failure=shrink", f"--train.total_steps={STEPS}", "--comm.check_every_updates=1")
BACKUP = ("--comm.strategy=backup", "--comm.n_backup=1")


@pytest.mark.parametrize(
    ("victims", "options"), [([2], ()), ([0, 3], ()), ([1], BACKUP)], ids=["rank 2", "ranks 0 and 3", "backup"]
)
@pytest.mark.fault(1, "SIGKILL with comm.on_failure=shrink")
def test_the_survivors_continue_with_equal_weights(
    tmp_path: Path, happened: Happened, victims: list[int], options: tuple[str, ...]
) -> None:
    """Weights are compared after every update, or the job would not end with 0."""
    faults = ",".join(f"{victim}:25:kill" for victim in victims)
    job = four_ranks.Job(tmp_path, *SHRINK, *options, fault=faults, launcher=FAULT_TOLERANT)
    job.wait_for_update(20)
    since = time.monotonic()
    job.wait_for_words("training continues on")
    took = time.monotonic() - since
    ended = job.end(since)
    assert ended.code == 0, ended.output
    left, names = four_ranks.RANKS - len(victims), [f"rank {victim} on {HOST}" for victim in victims]
    assert re.search(r"failed in update 2[3-6]: training continues on \d of \d ranks", ended.output)
    assert f"with {8 * left} samples per update instead of" in ended.output
    summary = real_jobs.summary(tmp_path)
    assert summary["ranks"] == left
    assert len(summary["lost_ranks"]) == len(victims)
    assert names[0] in ended.output
    assert STEPS <= summary["steps"] < STEPS + 32
    assert four_ranks.loadable(tmp_path) == summary["updates"]
    assert took < 10
    happened(f"{' and '.join(names)}: {left} continue with equal weights, code 0", took, "the update in flight")


@pytest.mark.fault(1, "SIGKILL of two ranks, one after the other, with comm.on_failure=shrink")
def test_the_second_failure_is_named_by_the_number_that_the_rank_had_at_the_start(
    tmp_path: Path, happened: Happened
) -> None:
    job = four_ranks.Job(tmp_path, *SHRINK, fault="1:25:kill,3:40:kill", launcher=FAULT_TOLERANT)
    ended = job.end(time.monotonic(), seconds=240)
    assert ended.code == 0, ended.output
    assert re.search(f"rank 1 on {HOST} failed in update 2[3-6]: training continues on 3 of 4", ended.output)
    assert re.search(f"rank 3 on {HOST} failed in update (39|4[01]): training continues on 2 of 3", ended.output)
    assert real_jobs.summary(tmp_path)["lost_ranks"] == [f"rank {rank} on {HOST}" for rank in (1, 3)]
    happened("both named by the numbers they had at the start, 2 continue, code 0", None, "two updates")


def test_shrinking_is_refused_under_a_launcher_that_cannot(tmp_path: Path) -> None:
    result = real_jobs.train(2, tmp_path / "run", "--comm.on_failure=shrink")
    assert result.code == 2, result.output
    assert "mpirun --with-ft ulfm" in result.output
    assert result.output.count("dba3c:") == 1
