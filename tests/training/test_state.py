"""The state of a run on the disk and in memory, when several ranks hold it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files import checkpoint
from dba3c.run_files.progress import Progress
from dba3c.run_files.trained_agents import load_best
from dba3c.training import build
from dba3c.training.state import State, WeightsDifferError, check_weights, weight_hash
from dba3c.types import Clock
from tests.fakes.agents import small
from tests.fakes.loopback import Loopback


def state(run_dir: Path, seconds: float) -> State:
    """Of one rank; each has its own clock, so what they save of the same update differs."""
    config = small()
    agent = build.agent(config)
    found = State(config, agent, build.optimizer(config, agent), run_dir)
    found.progress.seconds = seconds
    return found


def test_ranks_that_lost_contact_leave_each_others_checkpoints_alone(tmp_path: Path) -> None:
    """Each would take the other's for one that is out of date: nothing would be left if they tidied up in turn."""
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    here.save()
    there.save_now(equal_weights=True)
    here.save_now(equal_weights=True)
    left = [checkpoint.load(path).progress["seconds"] for path in checkpoint.newest_first(tmp_path / "checkpoints")]
    assert sorted(left) == [1.0, 2.0]


def test_the_next_regular_save_tidies_up(tmp_path: Path) -> None:
    here, there = state(tmp_path, 1.0), state(tmp_path, 2.0)
    there.save_now(equal_weights=True)
    here.save()
    (left,) = checkpoint.newest_first(tmp_path / "checkpoints")
    assert checkpoint.load(left).progress["seconds"] == 1.0


def test_an_emergency_save_says_what_became_of_it(tmp_path: Path) -> None:
    here = state(tmp_path, 1.0)
    assert here.save_now(equal_weights=True) == "saved update 0"
    assert here.save_now(equal_weights=False) == "the last regular save counts"


def test_a_full_disk_is_reported_and_nothing_else_happens(tmp_path: Path) -> None:
    def full(_update: int) -> None:
        raise OSError("no space left on device")

    config = small()
    agent = build.agent(config)
    here = State(config, agent, build.optimizer(config, agent), tmp_path)
    here.before_saving.append(full)
    assert here.save_now(equal_weights=True) == "could not save: no space left on device"
    with pytest.raises(OSError, match="no space left"):
        here.save()
    assert not checkpoint.newest_first(tmp_path / "checkpoints")


def test_runs_that_must_resume_exactly_are_saved_at_regular_times_only(tmp_path: Path) -> None:
    config = small("checkpoint.restart_games=true")
    agent = build.agent(config)
    here = State(config, agent, build.optimizer(config, agent), tmp_path)
    assert here.save_now(equal_weights=True) == "the last regular save counts"
    assert not (tmp_path / "checkpoints").exists()


def test_weights_optimizer_progress_and_algorithm_are_restored(tmp_path: Path) -> None:
    ppo = small("algorithm.name=ppo", "actor.n_steps=8", "train.total_steps=1000")
    agent = build.agent(ppo)
    first = State(ppo, agent, build.optimizer(ppo, agent), tmp_path)
    first.progress = Progress(updates=3, steps=240, skipped=1, evaluation_score=2.0, evaluation_games=5)
    agent.algorithm.restore({"advantage_scale": np.array(0.25)})
    first.save()
    other = build.agent(ppo)
    second = State(ppo, other, build.optimizer(ppo, other), tmp_path)
    notes: list[str] = []
    saved = second.load(notes)
    assert saved is not None
    second.restore(saved)
    assert second.progress == first.progress
    assert other.clock == Clock(3, 240, 1000)
    assert float(other.algorithm.state()["advantage_scale"]) == 0.25
    assert other.weights.numpy().tobytes() == agent.weights.numpy().tobytes()
    assert notes == [f"resuming {tmp_path} at update 3, step 240, with new episodes"]


def test_a_checkpoint_that_does_not_fit_the_agent_is_passed_over(tmp_path: Path) -> None:
    here = state(tmp_path, 1.0)
    here.save()
    good = here.snapshot()
    for updates, change in ((1, {"weights": good.weights[:-1]}), (2, {"optimizer": {"steps": np.array(2)}})):
        optimizer = {name: slot[:-1] if slot.ndim else slot for name, slot in good.optimizer.items()}
        crafted = good._replace(progress=good.progress | {"updates": updates}, **{"optimizer": optimizer} | change)
        checkpoint.add(tmp_path / "checkpoints", crafted)
    notes: list[str] = []
    saved = state(tmp_path, 1.0).load(notes)
    assert saved is not None
    assert saved.progress["updates"] == 0
    assert [("does not fit this agent" in note) for note in notes] == [True, True, False]


def evaluated(here: State, updates: int, score: float) -> None:
    here.progress = Progress(updates=updates)
    here.progress.evaluated(score, 2, full=True, target=None)
    here.save_best()


def test_the_best_weights_are_kept_whatever_comes_later(tmp_path: Path) -> None:
    here = state(tmp_path, 1.0)
    folder = tmp_path / "checkpoints"
    for updates, score, best in ((1, 3.0, 1), (2, 5.0, 2), (3, 4.0, 2), (4, 5.0, 4)):
        evaluated(here, updates, score)
        found = load_best(folder, pytest.fail)
        assert found is not None
        assert found.progress["updates"] == best  # the newer of equals
    assert found.optimizer == {}
    for updates in range(5, 9):
        here.progress.updates = updates
        here.save()
    assert (folder / "best.npz").is_file()
    newest = checkpoint.load_newest(folder, pytest.fail)
    assert newest is not None
    assert newest.progress["updates"] == 8  # best.npz is not resumed from, and `keep` does not count it
    assert len(checkpoint.newest_first(folder)) == small().checkpoint.keep


def test_a_resumed_run_keeps_the_best_weights_of_the_run_before(tmp_path: Path) -> None:
    evaluated(state(tmp_path, 1.0), 7, 5.0)
    evaluated(state(tmp_path, 2.0), 6, 4.0)  # it resumed from an older checkpoint, which knows no score
    found = load_best(tmp_path / "checkpoints", pytest.fail)
    assert found is not None
    assert found.progress["updates"] == 7


def test_damaged_best_weights_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "best.npz").write_bytes(b"PK not really")
    evaluated(state(tmp_path, 1.0), 7, 5.0)
    assert load_best(tmp_path / "checkpoints", pytest.fail) is not None


def test_a_trained_agent_with_too_few_weights_is_refused(tmp_path: Path) -> None:
    saved = state(tmp_path, 1.0).snapshot()
    assert build.trained(saved).version == 0
    with pytest.raises(ConfigError, match=r"the checkpoint has .* weights, but the network .*; choose another"):
        build.trained(saved._replace(weights=saved.weights[:-1]))


def test_hash_is_sixteen_hexadecimal_digits() -> None:
    text = weight_hash(np.arange(5, dtype=np.float32))
    assert len(text) == 16
    assert int(text, 16) >= 0


@pytest.mark.parametrize("place", [0, 50, 99])
def test_hash_changes_with_any_bit(place: int) -> None:
    weights = np.random.default_rng(6).normal(size=100).astype(np.float32)
    hashes = {weight_hash(weights)}
    for bit in range(32):
        changed = weights.copy()
        changed.view(np.uint32)[place] ^= np.uint32(1 << bit)
        hashes.add(weight_hash(changed))
    assert len(hashes) == 33


def test_hash_changes_with_order_and_length_and_sign_of_zero() -> None:
    vectors = [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0, 0.0], [1.0, 2.0, -0.0], []]
    assert len({weight_hash(np.array(vector, np.float32)) for vector in vectors}) == len(vectors)


def test_hash_depends_on_the_values_only() -> None:
    weights = np.random.default_rng(7).normal(size=(10, 2)).astype(np.float32)
    column = weights[:, 0]  # not contiguous
    assert weight_hash(column) == weight_hash(column.copy())


class ThreeRanks(Loopback):
    """Two other ranks with weights of their own."""

    def __init__(self, *others: str) -> None:
        self._others = others

    def gather(self, value):  # type: ignore[no-untyped-def]
        return [value, *self._others]


def test_ranks_that_differ_from_the_majority_are_named() -> None:
    weights = np.arange(5, dtype=np.float32)
    same, other = weight_hash(weights), weight_hash(weights + 1)
    check_weights(weights, ThreeRanks(same, same), 7)
    with pytest.raises(WeightsDifferError, match=r"after update 7 the weights of ranks \[2\] differ"):
        check_weights(weights, ThreeRanks(same, other), 7)
    with pytest.raises(WeightsDifferError, match=r"ranks \[0\]"):
        check_weights(weights, ThreeRanks(other, other), 7)


def test_ranks_are_named_by_the_numbers_they_had_at_the_start() -> None:
    weights = np.arange(5, dtype=np.float32)
    same, other = weight_hash(weights), weight_hash(weights + 1)
    with pytest.raises(WeightsDifferError, match=r"ranks \[3\] differ"):
        check_weights(weights, ThreeRanks(same, other), 7, numbers=(0, 2, 3))
