"""Whole jobs, started as a user starts them: what they leave behind, and that they can be repeated and resumed."""

from __future__ import annotations

import csv
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from dba3c.run_files import checkpoint
from dba3c.types import Array
from tests.conftest import Happened
from tests.fakes import real_jobs, waiting

SUMMARY = {
    "steps", "updates", "seconds", "steps_per_second", "ranks", "cores", "parameters", "weight_hash", "online_score",
    "evaluation_score",
}  # fmt: skip


def weights(run_dir: Path) -> Array:
    return checkpoint.load(checkpoint.newest_first(run_dir / "checkpoints")[0]).weights


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_job_leaves_its_results(tmp_path: Path, ranks: int) -> None:
    evaluation = ("--evaluate.games=3", "--evaluate.max_frames=400", "--evaluate.every_updates=30")
    evaluation += ("--evaluate.probe_games=1",)  # which is not enough at the end
    result = real_jobs.train(ranks, tmp_path, "--train.total_steps=480", "--train.log_every_seconds=0.2", *evaluation)
    assert result.code == 0, result.output
    summary = real_jobs.summary(tmp_path)
    assert "leak" not in result.output
    assert summary.keys() >= SUMMARY
    assert summary["steps"] == 480
    assert summary["ranks"] == max(ranks, 1)
    assert summary["updates"] * summary["ranks"] == 60  # of 2 games × 4 steps each
    assert -21 <= summary["evaluation_score"] <= 21
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    assert int(rows[-1]["steps"]) == 480
    assert [row["evaluation_games"] for row in rows if row["evaluation_games"]][-1] == "3"
    assert list(tmp_path.glob("events.out.tfevents.*"))
    assert "game: pong" in (tmp_path / "config.yaml").read_text(encoding="utf-8")


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    options = ("--train.total_steps=160", "--evaluate.games=2", "--evaluate.max_frames=200")
    assert real_jobs.train(2, tmp_path, *options).code == 0
    before = (tmp_path / "summary.json").read_bytes()
    again = real_jobs.train(2, tmp_path, *options)
    assert again.code == 0, again.output
    assert "nothing to do" in again.output
    assert (tmp_path / "summary.json").read_bytes() == before
    first = real_jobs.summary(tmp_path)
    (tmp_path / "summary.json").unlink()  # as if it had been killed right after its last save
    assert real_jobs.train(2, tmp_path, *options).code == 0
    same = ("weight_hash", "updates", "steps", "evaluation_score")
    assert [real_jobs.summary(tmp_path)[name] for name in same] == [first[name] for name in same]


def test_the_target_ends_training(tmp_path: Path) -> None:
    """Every game of Pong ends with -21 or more; a few early ones are enough to tell."""
    options = ("--evaluate.games=2", "--evaluate.every_updates=10", "--train.target_score=-21")
    assert real_jobs.train(2, tmp_path, *options, "--evaluate.max_frames=400").code == 0
    summary = real_jobs.summary(tmp_path)
    assert (summary["updates"], summary["target_reached"]) == (10, True)
    assert "nothing to do" in real_jobs.train(2, tmp_path, *options).output


def test_async_and_the_paper_preset_run(tmp_path: Path) -> None:
    options = ("--preset=paper", "--env.n_sim=2", "--model.hidden=16", "--train.batch_size=7", "--train.total_steps=42")
    result = real_jobs.run(2, "-m", "dba3c.train", *options, "--evaluate.games=0", f"--run-dir={tmp_path}")
    assert result.code == 0, result.output
    assert real_jobs.summary(tmp_path)["steps"] == 42
    assert "leak" not in result.output


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    """What the same seed gives, tests/faults/test_soak.py compares."""
    for name in ("0", "1"):
        assert real_jobs.train(2, tmp_path / name, "--train.total_steps=64", f"--train.seed={name}").code == 0
    assert real_jobs.summary(tmp_path / "0")["weight_hash"] != real_jobs.summary(tmp_path / "1")["weight_hash"]


def test_two_ranks_equal_one_with_twice_the_games(tmp_path: Path) -> None:
    """Adam's tiny epsilon would blow rounding up; at 1e-3 the weights agree to what float32 can hold."""
    options = ("--train.total_steps=160", "--optimizer.name=adam", "--optimizer.epsilon=1e-3")
    assert real_jobs.train(2, tmp_path / "two", *options).code == 0
    assert real_jobs.train(1, tmp_path / "one", *options, "--env.n_sim=4").code == 0
    np.testing.assert_allclose(weights(tmp_path / "two"), weights(tmp_path / "one"), rtol=0, atol=2e-5)


@pytest.mark.fault(26, "Ctrl-C under mpirun")
def test_ctrl_c_under_mpirun_loses_nothing(tmp_path: Path, happened: Happened) -> None:
    """mpirun kills its ranks a quarter of a second after it passed the signal on; the paper's updates take longer."""
    slow = ("--preset=paper", "--game=pong", "--train.batch_size=256", "--evaluate.games=0", f"--run-dir={tmp_path}")
    process = real_jobs.start(2, "-m", "dba3c.train", *slow, "--checkpoint.every_updates=1", "--checkpoint.keep=1000")
    wait_for_checkpoint(tmp_path, 1)
    for path in checkpoint.newest_first(tmp_path / "checkpoints"):
        path.unlink()  # what is there from now on was saved later, or because of the signal
    ranks, since = real_jobs.ranks_of(process.pid), time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert "Traceback" not in output
    saved = checkpoint.newest_first(tmp_path / "checkpoints")
    assert saved
    assert checkpoint.load(saved[0]).progress["updates"] >= 1
    waiting.until(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks), 10)
    happened("saved within mpirun's quarter of a second, no process left", time.monotonic() - since)


def wait_for_checkpoint(run_dir: Path, update: int) -> None:
    folder = run_dir / "checkpoints"
    waiting.until(lambda: any(int(p.name[7:16]) >= update for p in checkpoint.newest_first(folder)))
