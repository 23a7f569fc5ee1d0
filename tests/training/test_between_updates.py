"""Consumers of updates: when each is due, what it does, and that the ranks meet exactly then."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from dba3c.run_files import checkpoint
from dba3c.run_files.directory import RunDirectory, prepare_directory
from dba3c.run_files.progress import Progress
from dba3c.run_files.trained_agents import load_best
from dba3c.training import between_updates, build
from dba3c.training.between_updates import CheckWeights, Evaluate, Log, Save, every
from dba3c.training.evaluation import Evaluation
from dba3c.training.ranks import Ranks
from dba3c.training.state import State
from dba3c.types import Gradient, Stop, Strategy, Transport, Update
from tests.fakes.agents import small
from tests.fakes.worlds import world


class Restarts:
    """An actor that is only restarted."""

    def __init__(self) -> None:
        self.at: list[int] = []

    def restart(self, update: int) -> None:
        self.at.append(update)

    def __iter__(self) -> Restarts:
        return self

    def __next__(self) -> None: ...
    def close(self) -> None: ...


class Unequal:
    """A strategy whose ranks have the same weights only where they meet."""

    equal_weights = False

    def update(self, _gradient: Gradient | None, _stop: Stop) -> list[Update]:
        raise NotImplementedError

    def close(self) -> None: ...


class Scene:
    """The consumers of a run of one rank, and what they said."""

    def __init__(self, run_dir: Path, *overrides: str) -> None:
        config = small(*overrides)
        agent = build.agent(config)
        self.state = State(config, agent, build.optimizer(config, agent), run_dir)
        self.said: list[str] = []
        self.log = Log(config, run_dir, self.state)
        self.log.say = self.said.append  # type: ignore[method-assign]
        self.ranks = Ranks(world(), config, no_strategy, self.state, self.said.append)
        self.actor = Restarts()
        self.check = CheckWeights(config, agent, self.ranks)
        self.evaluate = Evaluate(config, agent, self.ranks, self.state, self.log)
        self.directory = RunDirectory(run_dir, prepare_directory(run_dir), self.log)
        self.state.before_saving.append(self.directory.refuse_others)
        self.save = Save(config, self.ranks, self.state, self.actor, self.log, self.directory)

    @staticmethod
    def update(number: int) -> Update:
        return Update(number, 80, 80, skipped=False, stop=False, sums={}, by_rank={})

    def at(self, update: int) -> None:
        self.state.progress = Progress(updates=update, steps=10 * update)


def no_strategy(_transport: Transport) -> Strategy:
    raise NotImplementedError


def test_every_so_many_updates_or_never() -> None:
    assert [number for number in range(1, 13) if every(4, number)] == [4, 8, 12]
    assert not any(every(0, number) for number in range(100))


def test_each_consumer_is_due_by_its_own_key(tmp_path: Path) -> None:
    intervals = ("comm.check_every_updates=3", "evaluate.every_updates=4", "checkpoint.every_updates=5")
    scene = Scene(tmp_path, *intervals, "evaluate.games=2")
    due = {
        type(consumer).__name__: [number for number in range(1, 13) if consumer.due(number)]
        for consumer in (scene.check, scene.evaluate, scene.save, scene.log)
    }
    assert due == {"CheckWeights": [3, 6, 9, 12], "Evaluate": [4, 8, 12], "Save": [5, 10], "Log": []}


def test_without_games_no_evaluation_is_due(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "evaluate.every_updates=4", "evaluate.games=0")
    assert not any(scene.evaluate.due(number) for number in range(1, 13))
    scene.evaluate.at_the_end()
    assert scene.state.progress.evaluation_score is None


def test_evaluation_scores_and_when_the_target_counts_as_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = "evaluate.games=4", "evaluate.probe_games=2", "train.target_score=10", "evaluate.in_a_row=2"
    scene = Scene(tmp_path, *overrides)
    results = [Evaluation([11.0, 13.0], full=False), Evaluation([11.0, 13.0, 10.0, 10.0], full=True)]
    monkeypatch.setattr(between_updates, "evaluate", lambda *_: results.pop(0))
    scene.at(8)
    scene.evaluate.after(Scene.update(8))
    assert (scene.state.progress.evaluation_score, scene.state.progress.evaluation_games) == (12.0, 2)
    assert not scene.evaluate.target_reached  # by the probe alone
    scene.evaluate.at_the_end()
    assert (scene.state.progress.evaluation_score, scene.state.progress.evaluation_games) == (11.0, 4)
    assert not scene.evaluate.target_reached  # by one evaluation
    scene.evaluate.at_the_end()  # has just been done
    assert not results
    assert scene.said == [
        "evaluation after update 8: 12.0, mean of 2 greedy episodes",
        "evaluation after update 8: 11.0, mean of 4 greedy episodes; 1 of 2 in a row that reach the target",
    ]
    assert scene.state.progress.evaluation_scores == [11.0, 13.0, 10.0, 10.0]
    best = load_best(tmp_path / "checkpoints", pytest.fail)
    assert best is not None
    assert best.progress["evaluation_scores"] == [11.0, 13.0]
    scene.state.progress.updates = 9
    results.append(Evaluation([10.0] * 4, full=True))
    scene.evaluate.after(Scene.update(9))
    assert scene.evaluate.target_reached
    scene.state.progress.updates = 10
    assert not scene.evaluate.target_reached  # other weights


def test_where_weights_differ_an_overdue_save_calls_one_meeting_and_is_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    scene = Scene(tmp_path, "comm.strategy=server", "checkpoint.every_seconds=300")
    scene.ranks.strategy = Unequal()
    scene.at(1)
    assert not scene.save.calls_meeting()
    now[0] = 301.0
    assert [scene.save.calls_meeting() for _ in range(2)] == [True, False]
    scene.save.after_any(Scene.update(1))
    assert saved_updates(tmp_path) == []  # the weights are those of this rank alone
    scene.save.after_any(Scene.update(1)._replace(meeting=True))
    assert saved_updates(tmp_path) == [1]
    now[0] = 600.0
    assert not scene.save.calls_meeting()


@pytest.mark.parametrize("without", ["checkpoint.every_seconds=0", "checkpoint.restart_games=true"])
def test_a_run_that_saves_by_updates_only_calls_no_meeting(tmp_path: Path, without: str) -> None:
    scene = Scene(tmp_path, "comm.strategy=server", "checkpoint.every_seconds=0.01", without)
    time.sleep(0.02)
    assert not scene.save.calls_meeting()


def saved_updates(run_dir: Path) -> list[int]:
    return [checkpoint.update_of(path) for path in checkpoint.newest_first(run_dir / "checkpoints")]


@pytest.mark.parametrize("restart", [True, False])
def test_a_save_restarts_the_episodes_if_that_was_asked_for(tmp_path: Path, restart: bool) -> None:
    scene = Scene(tmp_path, f"checkpoint.restart_games={str(restart).lower()}")
    scene.at(20)
    scene.save.after(Scene.update(20))
    assert saved_updates(tmp_path) == [20]
    assert scene.actor.at == ([20] if restart else [])


def test_a_disk_that_is_full_is_reported_and_training_continues(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (tmp_path / "checkpoints").write_text("in the way", encoding="utf-8")
    scene.at(5)
    assert not scene.save.save()
    assert len(scene.said) == 1
    assert scene.said[0].startswith("could not save update 5: ")
    assert "training continues" in scene.said[0]


def test_only_the_first_rank_writes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.ranks.world = world(rank=1, size=2)
    assert scene.save.save()
    assert not (tmp_path / "checkpoints").exists()


def test_a_directory_that_another_job_has_taken_is_left_alone(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    with prepare_directory(tmp_path / "run"):
        assert not scene.save.save()
        assert scene.directory.taken
        assert scene.state.save_now(equal_weights=True).startswith("could not save: ")
    assert not scene.save.save()  # nor when the other job has ended
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["lock"]
    assert len(scene.said) == 1
    assert "another job has begun to train there: this one ends" in scene.said[0]


def test_best_weights_that_cannot_be_saved_end_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, "evaluate.games=2")
    (tmp_path / "checkpoints").write_text("in the way", encoding="utf-8")
    monkeypatch.setattr(between_updates, "evaluate", lambda *_: Evaluation([1.0, 2.0], full=True))
    scene.evaluate.after(Scene.update(8))
    assert scene.said[1].startswith("could not save the best weights: ")
