"""One run in this process: what it leaves, how it ends, and that it goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_OK, EXIT_STOPPED
from dba3c.job.signals import STOP_SIGNALS
from dba3c.run_files import checkpoint, directory
from dba3c.run_files.directory import exit_code, prepare_directory, stopped
from dba3c.training.injected import Faults, planned
from dba3c.training.run import Run
from dba3c.types import Json
from tests.fakes import waiting
from tests.fakes.settings import settings
from tests.fakes.worlds import world

ROWS_OF_8 = ("env.game=pong", "env.n_sim=2", "actor.n_steps=4", "model.hidden=16", "train.log_every_seconds=0.01")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Put back what a run does to this process's signals."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def config(updates: int, *overrides: str) -> Config:
    """Updates of 8 steps, without evaluation, saved every 10."""
    usual = (f"train.total_steps={8 * updates}", "evaluate.games=0", "checkpoint.every_updates=10")
    return settings(*ROWS_OF_8, *usual, *overrides)


def run(run_dir: Path, settings_of_run: Config, faults: str = "") -> int:
    return Run(world(), settings_of_run, run_dir, Faults(planned(faults), 0)).train()


def summary(run_dir: Path) -> Json:
    content: Json = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    return content


def saved(run_dir: Path) -> list[int]:
    return [checkpoint.update_of(path) for path in checkpoint.newest_first(run_dir / "checkpoints")]


def test_a_run_is_done_resumed_with_more_steps_and_then_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, config(15)) == EXIT_OK
    assert (summary(tmp_path)["updates"], summary(tmp_path)["steps"], saved(tmp_path)) == (15, 120, [15, 10])
    assert "done after 15 updates, 120 steps" in capsys.readouterr().err
    assert run(tmp_path, config(25)) == EXIT_OK
    assert summary(tmp_path)["updates"] == 25
    output = capsys.readouterr().err
    assert f"resuming {tmp_path} at update 15, step 120, with new episodes" in output
    assert "changed since then: train.total_steps: 120 → 200" in output
    written = (tmp_path / "summary.json").stat().st_mtime_ns
    assert run(tmp_path, config(25)) == EXIT_OK
    assert "nothing to do: done after 25 updates" in capsys.readouterr().err
    assert (tmp_path / "summary.json").stat().st_mtime_ns == written


def test_the_target_ends_it(tmp_path: Path) -> None:
    evaluation = ("evaluate.games=2", "evaluate.max_frames=400", "evaluate.every_updates=5", "train.target_score=-21")
    assert run(tmp_path, config(1000, *evaluation)) == EXIT_OK
    found = summary(tmp_path)
    assert (found["updates"], found["target_reached"], found["evaluation_games"]) == (10, True, 2)  # twice in a row
    assert len(found["evaluation_scores"]) == 2
    assert np.mean(found["evaluation_scores"]) == found["evaluation_score"]
    assert (tmp_path / "checkpoints" / "best.npz").is_file()
    assert exit_code(tmp_path) == EXIT_OK


def test_a_time_limit_ends_it_with_an_evaluation_and_for_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = ("train.max_minutes=0.02", "evaluate.games=1", "evaluate.max_frames=40", "evaluate.every_updates=0")
    assert run(tmp_path, config(10**6, *limit)) == EXIT_OK
    found = summary(tmp_path)
    assert found["seconds"] >= 1.2
    assert (found["evaluation_games"], found["evaluation_cut"]) == (1, 1)  # Pong takes more than 40 frames
    assert saved(tmp_path)[0] == found["updates"]
    output = capsys.readouterr().err
    assert "time limit of 0.02 minutes reached after" in output
    assert "mean of 1 greedy episodes, 1 of them cut off before their end" in output
    assert run(tmp_path, config(10**6, *limit)) == EXIT_OK
    assert "nothing to do: time limit" in capsys.readouterr().err


def test_gradients_that_stay_bad_end_it_with_the_last_good_weights(tmp_path: Path) -> None:
    assert run(tmp_path, config(1000, "train.max_bad_updates=3"), faults="0:13+:nan") == EXIT_NOT_FINITE
    assert saved(tmp_path) == [15, 10]
    assert summary(tmp_path)["skipped"] == 3
    assert all(checkpoint.load(path).weights.any() for path in checkpoint.newest_first(tmp_path / "checkpoints"))


def test_one_bad_gradient_is_skipped(tmp_path: Path) -> None:
    assert run(tmp_path, config(20), faults="0:13:nan") == EXIT_OK
    assert (summary(tmp_path)["skipped"], summary(tmp_path)["updates"]) == (1, 21)  # its steps were not learned from


def test_a_final_save_that_fails_is_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, config(15), faults="0:12+:disk-full") == EXIT_NOT_SAVED
    assert saved(tmp_path) == [10]
    assert "rank 0 on a could not save the final state" in capsys.readouterr().err
    assert exit_code(tmp_path) == EXIT_NOT_SAVED


def after(condition: Callable[[], bool], work: Callable[[], object]) -> threading.Thread:
    def wait() -> None:
        waiting.until(condition, 60)
        work()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_signal_stops_it_after_the_update_that_it_is_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killer = after(lambda: bool(saved(tmp_path)), lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert run(tmp_path, config(10**6)) == EXIT_STOPPED
    killer.join()
    updates = summary(tmp_path)["updates"]
    assert saved(tmp_path)[0] == updates
    output = capsys.readouterr().err
    assert "asked to stop by SIGTERM after" in output
    assert stopped(tmp_path)
    assert f"stopped by a signal to rank 0 on a after {updates:,} updates" in output
    assert "rerun the same command to resume" in output


def claimed(run_dir: Path, settings_of_run: Config) -> int:
    with prepare_directory(run_dir) as claim:
        return Run(world(), settings_of_run, run_dir, Faults([], 0), claim=claim).train()


def test_a_directory_removed_while_it_trains_is_created_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    remover = after(lambda: bool(saved(run_dir)), lambda: run_dir.rename(tmp_path / "moved"))  # all at once
    assert claimed(run_dir, config(150)) == EXIT_OK
    remover.join()
    assert summary(run_dir)["updates"] == saved(run_dir)[0] == 150
    assert not list(run_dir.rglob("*.abandoned"))
    assert {"lock", "config.yaml", "metrics.csv", "log.txt"} <= {path.name for path in run_dir.iterdir()}
    assert capsys.readouterr().err.count("was removed: it was created again, and training continues") == 1


def test_a_directory_taken_while_it_trains_ends_it_and_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "LOOK_SECONDS", 0.3)
    run_dir, other = tmp_path / "run", tmp_path / "other"

    def take() -> None:
        run_dir.rename(tmp_path / "moved")
        other.rename(run_dir)

    with prepare_directory(other):
        taker = after(lambda: any(run_dir.glob("events.out.*")), take)  # the last file that it opens
        assert claimed(run_dir, config(10**6, "checkpoint.every_updates=0")) == EXIT_NOT_SAVED
        taker.join()
    assert {path.name for path in run_dir.iterdir()} <= {"lock", "log.txt"}
