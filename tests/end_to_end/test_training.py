"""Whole jobs, started as a user starts them: what they leave behind, and that they can be repeated and resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from dba3c.run_files import checkpoint
from dba3c.types import Array
from tests.fakes import real_jobs, waiting

SUMMARY = {
    "steps", "updates", "seconds", "steps_per_second", "ranks", "cores", "parameters", "weight_hash", "online_score",
    "evaluation_score",
}  # fmt: skip


def weights(run_dir: Path) -> Array:
    return checkpoint.load(checkpoint.newest_first(run_dir / "checkpoints")[0]).weights


def train(ranks: int, run_dir: Path) -> real_jobs.Result:
    evaluation = ("--evaluate.games=3", "--evaluate.max_frames=400", "--evaluate.every_updates=30")
    evaluation += ("--evaluate.probe_games=1",)  # which is not enough at the end
    return real_jobs.train(ranks, run_dir, "--train.total_steps=480", "--train.log_every_seconds=0.2", *evaluation)


def check_results(run_dir: Path, ranks: int) -> None:
    summary = real_jobs.summary(run_dir)
    assert summary.keys() >= SUMMARY
    assert summary["steps"] == 480
    assert summary["ranks"] == ranks
    assert summary["updates"] * ranks == 60  # of 2 games × 4 steps each
    assert -21 <= summary["evaluation_score"] <= 21
    rows = list(csv.DictReader((run_dir / "metrics.csv").open()))
    assert int(rows[-1]["steps"]) == 480
    assert [row["evaluation_games"] for row in rows if row["evaluation_games"]][-1] == "3"
    assert list(run_dir.glob("events.out.tfevents.*"))
    assert "game: pong" in (run_dir / "config.yaml").read_text(encoding="utf-8")


def test_a_process_alone_leaves_its_results(tmp_path: Path) -> None:
    result = train(0, tmp_path)
    assert result.code == 0, result.output
    assert "leak" not in result.output
    check_results(tmp_path, ranks=1)


def test_a_job_leaves_its_results_and_no_second_one_changes_them(tmp_path: Path) -> None:
    result = train(2, tmp_path)
    assert result.code == 0, result.output
    assert "leak" not in result.output
    check_results(tmp_path, ranks=2)
    phases = ("loading TensorFlow", "building the network", "starting 4 simulators", "training begins")
    assert [result.output.count(f" s  {phase}") for phase in phases] == [1, 1, 1, 1], result.output
    assert 0 <= real_jobs.summary(tmp_path)["shares"]["other"] <= 1
    before = (tmp_path / "summary.json").read_bytes()
    again = train(2, tmp_path)
    assert again.code == 0, again.output
    assert "nothing to do" in again.output
    assert (tmp_path / "summary.json").read_bytes() == before
    first = real_jobs.summary(tmp_path)
    (tmp_path / "summary.json").unlink()  # as if it had been killed right after its last save
    assert train(2, tmp_path).code == 0
    same = ("weight_hash", "updates", "steps", "evaluation_score")
    assert [real_jobs.summary(tmp_path)[name] for name in same] == [first[name] for name in same]


def test_the_target_ends_training(tmp_path: Path) -> None:
    """Every game of Pong ends with -21 or more; a few early ones are enough to tell."""
    options = ("--evaluate.games=2", "--evaluate.every_updates=10", "--train.target_score=-21")
    assert real_jobs.train(2, tmp_path, *options, "--evaluate.max_frames=400").code == 0
    summary = real_jobs.summary(tmp_path)
    assert (summary["updates"], summary["target_reached"]) == (20, True)  # two evaluations in a row
    assert "nothing to do" in real_jobs.train(2, tmp_path, *options).output


def test_async_and_the_paper_preset_run(tmp_path: Path) -> None:
    options = ("--preset=paper", "--env.n_sim=2", "--model.hidden=16", "--train.batch_size=7", "--train.total_steps=42")
    result = real_jobs.run(2, "-m", "dba3c.train", *options, "--evaluate.games=0", f"--run-dir={tmp_path}")
    assert result.code == 0, result.output
    assert real_jobs.summary(tmp_path)["steps"] == 42
    assert "leak" not in result.output


@pytest.mark.fault(25, "resume with another number of ranks", "resumes; what changed is reported")
def test_the_default_is_resumed_with_another_number_of_ranks(tmp_path: Path) -> None:
    """Preset auto: the 16 simulators of ppo on one rank, then on three, which cannot share them evenly."""
    words = ("-m", "dba3c.train", "pong", f"--run-dir={tmp_path}", "--evaluate.games=0", "--algorithm.passes=1")
    words += ("--actor.n_steps=16",)
    first = real_jobs.run(0, *words, "--train.total_steps=256")
    assert first.code == 0, first.output
    assert "preset auto chose ppo for pong: 1 rank × 16 simulators = 16, as it was tuned" in first.output
    assert "name: ppo\n" in (tmp_path / "config.yaml").read_text(encoding="utf-8")
    second = real_jobs.run(0, *words, "--ranks=3", "--train.total_steps=0.4k")
    assert second.code == 0, second.output
    assert second.output.count("3 ranks × 5 simulators = 15, the nearest to the 16 that it was tuned with") == 1
    assert "changed since then: env.n_sim: 16 → 5" in second.output
    assert real_jobs.summary(tmp_path)["updates"] == 13  # eight from each whole segment


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(("--model.memory=8",), id="memory"),  # games that start anew at every save remember nothing
        pytest.param(  # the target network is older than the weights at every save
            ("--algorithm.name=q", "--algorithm.returns=sarsa", "--actor.carry=true", "--algorithm.epsilon_steps=2k",
             "--algorithm.target_every_steps=150"), id="q",
        ),
    ],
)  # fmt: skip
def test_killed_and_resumed_a_run_equals_the_unbroken_one(tmp_path: Path, what: tuple[str, ...]) -> None:
    options = (*what, "--checkpoint.restart_games=true", "--train.total_steps=2400")
    unbroken = real_jobs.train(0, tmp_path / "unbroken", *options)
    assert unbroken.code == 0, unbroken.output
    killed = tmp_path / "killed"
    process = real_jobs.start(0, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={killed}", *options)
    waiting.until(lambda: len(checkpoint.newest_first(killed / "checkpoints")) > 1, 60)
    process.kill()
    process.communicate()
    assert not (killed / "summary.json").exists()
    resumed = real_jobs.train(0, killed, *options)
    assert resumed.code == 0, resumed.output
    assert f"resuming {killed} at update" in resumed.output
    assert real_jobs.summary(killed)["weight_hash"] == real_jobs.summary(tmp_path / "unbroken")["weight_hash"]


def test_weights_depend_on_the_seed_and_not_on_the_number_of_ranks(tmp_path: Path) -> None:
    """Two ranks equal one with twice the games; what the same seed and layout give, tests/faults/test_soak.py compares.

    Adam's tiny epsilon would blow rounding up; at 1e-3 the weights agree to what float32 can hold.
    """
    options = ("--train.total_steps=160", "--optimizer.name=adam", "--optimizer.epsilon=1e-3")
    assert real_jobs.train(2, tmp_path / "two", *options).code == 0
    assert real_jobs.train(1, tmp_path / "one", *options, "--env.n_sim=4").code == 0
    assert real_jobs.train(1, tmp_path / "seed", *options, "--env.n_sim=4", "--train.seed=1").code == 0
    np.testing.assert_allclose(weights(tmp_path / "two"), weights(tmp_path / "one"), rtol=0, atol=2e-5)
    assert np.abs(weights(tmp_path / "seed") - weights(tmp_path / "one")).max() > 0.01
