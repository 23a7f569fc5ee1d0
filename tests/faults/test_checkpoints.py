"""Checkpoints that were damaged, and saves that were cut short."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dba3c.run_files.checkpoint import Checkpoint, load_newest, newest_first, save, update_of
from tests.conftest import Happened
from tests.fakes import real_jobs
from tests.fakes.settings import settings
from tests.faults import four_ranks

PLACES = 200


def state(updates: int) -> Checkpoint:
    weights = np.random.default_rng(updates).normal(size=20_000).astype(np.float32)
    return Checkpoint(weights, {"m": weights, "steps": np.array(updates)}, {"updates": updates}, settings(), {})


@pytest.mark.parametrize("how", ["truncated", "flipped"])
@pytest.mark.fault(10, "newest checkpoint damaged")
def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_loaded(
    tmp_path: Path, happened: Happened, how: str
) -> None:
    save(tmp_path, state(1), keep=3)
    newest = save(tmp_path, state(2), keep=3)
    whole, dice = newest.read_bytes(), random.Random(0)
    for place in (0, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(PLACES - 2))):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << dice.randrange(8)
        newest.write_bytes(damaged if how == "flipped" else damaged[:place])
        warnings: list[str] = []
        loaded = load_newest(tmp_path, warnings.append)
        assert loaded is not None
        np.testing.assert_array_equal(loaded.weights, state(1).weights)
        assert len(warnings) == 1
        assert newest.name in warnings[0]
    happened(
        f"{how} at {PLACES} random places: reported, and the one before is loaded, every time",
        lost="since the one before",
    )


def save_for_ever(folder: Path) -> None:
    """In a process of its own: prints the number of each checkpoint once it is saved."""
    for update in itertools.count(1):
        save(folder, state(update), keep=3)
        print(update, flush=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.fault(7, "signal during a save")
def test_a_save_that_is_cut_short_leaves_whole_checkpoints_only(
    tmp_path: Path, happened: Happened, number: signal.Signals
) -> None:
    dice = random.Random(number)
    words = f"from tests.faults.test_checkpoints import *; save_for_ever(Path({str(tmp_path)!r}))"
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", words], cwd=real_jobs.ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(dice.uniform(0, 0.02))
        process.send_signal(number)
        printed = int((first + process.stdout.read()).split()[-1])
        process.wait()
        warnings: list[str] = []
        loaded = load_newest(tmp_path, warnings.append)
        assert loaded is not None
        assert loaded.progress["updates"] >= printed
        assert not warnings
    happened(f"{number.name}, ten times: what was saved loads; half a file never counts as a checkpoint")


@pytest.mark.fault(8, "SIGTERM, and SIGKILL right after it")
def test_a_grace_that_is_too_short_leaves_a_whole_checkpoint(tmp_path: Path, happened: Happened) -> None:
    job = four_ranks.Job(tmp_path)
    job.wait_for_update(10)
    ranks = [job.rank(number) for number in range(four_ranks.RANKS)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in ranks:
            os.kill(pid, number)
        time.sleep(0.02)
    ended = job.end(time.monotonic())
    assert ended.code != 0
    assert four_ranks.loadable(tmp_path) >= 10
    happened("the last whole checkpoint loads", ended.seconds, "at most 10 updates")


@pytest.mark.fault(10, "all checkpoints damaged")
def test_damage_to_all_checkpoints_is_refused_and_no_run_starts_afresh(tmp_path: Path, happened: Happened) -> None:
    for updates in (1, 2):
        path = save(tmp_path / "checkpoints", state(updates), keep=3)
        path.write_bytes(path.read_bytes()[:-1])
    result = real_jobs.train(2, tmp_path)
    assert result.code == 2, result.output
    assert result.output.count("dba3c:") == 1
    assert "none of its 2 checkpoints can be loaded" in result.output
    assert [update_of(path) for path in newest_first(tmp_path / "checkpoints")] == [2, 1]
    happened("refused in one message, code 2; the files are left as they are")


@pytest.mark.fault(11, "checkpoint of another game")
def test_a_checkpoint_of_another_game_is_refused_with_both_values(tmp_path: Path, happened: Happened) -> None:
    save(tmp_path / "checkpoints", state(1), keep=3)  # of breakout
    result = real_jobs.train(2, tmp_path)
    assert result.code == 2, result.output
    assert "env.game='pong'" in result.output
    assert result.output.count("dba3c:") == 1
    happened("refused, the field and both values named, code 2")
