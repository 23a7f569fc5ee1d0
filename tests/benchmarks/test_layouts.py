"""Layouts that tune tries, and its advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.benchmarks import launching, layouts
from dba3c.benchmarks.layouts import Allocation
from dba3c.config import loading
from dba3c.config.messages import ConfigError


@pytest.mark.parametrize("preset", ["fast", "ppo", "paper"])
@pytest.mark.parametrize("cores", [1, 2, 6, 64])
def test_tune_tries_layouts_that_fit_and_are_valid(cores: int, preset: str) -> None:
    batch = layouts.usual_batch(cores, preset)
    found = layouts.candidates(cores, preset, batch)
    assert len(found) == len(set(found))
    assert {allocation.threads for allocation in found} == {1, max(1, cores // 2), cores}
    for allocation in found:
        assert 1 <= allocation.ranks * allocation.threads <= cores
        assert allocation.steps_per_update == batch
        config = loading.load(preset, [f"{key}={value}" for key, value in allocation.keys.items()])
        assert config.env.n_sim == allocation.n_sim
        assert config.batch_size * allocation.ranks == allocation.steps_per_update


def test_tune_tries_the_threads_of_ga3c_where_a_rank_has_several_cores() -> None:
    crews = {
        (allocation.threads, allocation.predictors, allocation.trainers)
        for allocation in layouts.candidates(4, "ga3c", 160)
        if allocation.kind == "async"
    }
    assert {crew for crew in crews if crew[0] == 1} == {(1, 1, 1)}
    assert {crew for crew in crews if crew[0] == 4} == {(4, 1, 1), (4, 2, 1), (4, 1, 2), (4, 2, 2)}
    words = Allocation(1, 4, "async", 64, 5, 1, 2, 1, 40).arguments
    assert {"--actor.predictors=2", "--train.batch_size=40"} <= set(words)
    assert not [word for word in words if "trainers" in word]


def test_a_batch_that_no_layout_can_make_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^--batch=7: .* use a multiple of 256"):
        layouts.candidates(2, "ppo", 7)


def test_a_trial_is_long_enough_for_updates_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One update of PPO needs more steps than a few seconds would give."""
    started: list[list[str]] = []

    def run(_ranks: int, _module: str, words: list[str], _threads: int, **_options: object) -> None:
        started.append(words)
        Path(words[words.index("--run-dir") + 1], "summary.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(launching, "run", run)
    for steps in (1000, 10**6):
        layouts.trial(Allocation(2, 1, "lockstep", 32, 128), "pong", "ppo", steps)
    assert "--train.total_steps=32768" in started[0]
    assert "--train.total_steps=1000000" in started[1]


def test_advice_can_be_typed() -> None:
    text = layouts.advice(Allocation(4, 2, "async", 16), {"steps_per_second": 1234.5}, "pong", "a2c")
    assert "mpirun -np 4 --map-by slot:PE=2" in text
    assert "srun --mpi=pmix --ntasks-per-node=4 --cpus-per-task=2" in text
    assert "with 320 samples per update: 4 ranks" in text
    assert "--actor.group_size=4" in text
    assert "env: {n_sim: 16}" in text


def test_a_rank_of_several_cores_has_a_shard_for_each() -> None:
    assert "--actor.shards=4" in Allocation(1, 4, "lockstep", 64).arguments
    assert not [word for word in Allocation(4, 1, "lockstep", 16).arguments if "shards" in word]
    assert not [word for word in Allocation(1, 4, "async", 64).arguments if "shards" in word]


def test_an_older_version_gets_the_keys_that_it_has(tmp_path: Path) -> None:
    older = tmp_path / "hyperparams.yaml"
    older.write_text("env: {n_sim: 1}\nactor: {kind: lockstep, n_steps: 5}\ntrain: {batch_size: 5}\n", encoding="utf-8")
    words = Allocation(1, 4, "lockstep", 64).arguments_for(older)
    assert words == ["--actor.kind=lockstep", "--actor.n_steps=5", "--env.n_sim=64", "--train.batch_size=320"]
