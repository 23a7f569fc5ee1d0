"""Preset auto: what it chooses for each game and number of ranks, and that layouts learn the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.config import auto, loading
from dba3c.config.schema import Config

FEW = {1: 16, 2: 8, 3: 5, 4: 4, 5: 3, 8: 2, 12: 1, 15: 1}  # ranks → simulators of each


@pytest.mark.parametrize(("game", "preset"), [("breakout", "fast"), ("pong", "ppo"), ("skiing", "ppo")])
@pytest.mark.parametrize("ranks", FEW)
def test_few_ranks_share_the_simulators_that_were_tuned(game: str, preset: str, ranks: int) -> None:
    config, note = auto.resolve(game, ranks, [f"env.game={game}"])
    assert config == loading.load(preset, [f"env.game={game}", f"env.n_sim={FEW[ranks]}"])
    assert f"chose {preset} for {game}" in note
    assert ("nearest to the 16" in note) == (ranks * FEW[ranks] != 16)
    assert "\n" not in note


@pytest.mark.parametrize("game", ["breakout", "pong"])
def test_layouts_with_few_ranks_have_the_same_batch(game: str) -> None:
    configs = {ranks: auto.resolve(game, ranks).config for ranks in (1, 2, 4, 8)}
    assert {ranks * config.env.n_sim for ranks, config in configs.items()} == {16}
    assert len({ranks * config.batch_size for ranks, config in configs.items()}) == 1
    others = [config.flat() | {"env.n_sim": 0} for config in configs.values()]
    assert all(other == others[0] for other in others)  # so that only the layout differs: tests/mpi/test_equivalence.py


def test_the_total_is_never_far_from_what_was_tuned() -> None:
    totals = [ranks * auto.few_ranks("pong", ranks).n_sim for ranks in range(1, 16)]  # type: ignore[operator]
    assert min(totals) >= 11
    assert max(totals) <= 20


@pytest.mark.parametrize(("game", "preset"), [("breakout", "paper"), ("pong", "paper-pong"), ("qbert", "paper")])
@pytest.mark.parametrize("ranks", [16, 64])
def test_many_ranks_train_the_papers_recipe(game: str, preset: str, ranks: int) -> None:
    config, note = auto.resolve(game, ranks, [f"env.game={game}"])
    assert config == loading.load(preset, [f"env.game={game}"])
    assert f"{ranks} ranks × 10 simulators, {32 * ranks:,} samples per update" in note


def test_what_is_given_wins(tmp_path: Path) -> None:
    config, note = auto.resolve("pong", 2, ["env.n_sim=3", "optimizer.learning_rate=0.1"])
    assert (config.env.n_sim, config.optimizer.learning_rate) == (3, 0.1)
    assert "2 ranks × 3 simulators, as asked for" in note
    file = tmp_path / "mine.yaml"
    file.write_text("env: {n_sim: 5}", encoding="utf-8")
    assert auto.resolve("pong", 2, path=file).config.env.n_sim == 5
    assert auto.resolve("pong", 2, ["env.n_sim=3"], file).config.env.n_sim == 3


def test_a_complete_file_leaves_nothing_to_choose(tmp_path: Path) -> None:
    written = loading.load("a2c", ["model.hidden=64"])
    (tmp_path / "config.yaml").write_text(written.dump(), encoding="utf-8")
    assert auto.resolve("breakout", 4, path=tmp_path / "config.yaml") == (written, "")


def begun(game: str, ranks: int, *overrides: str) -> Config:
    return auto.resolve(game, ranks, overrides).config


@pytest.mark.parametrize(("before", "now"), [(2, 64), (64, 2), (1, 16), (16, 15), (2, 4)])
def test_a_run_is_resumed_with_its_own_recipe_on_any_number_of_ranks(before: int, now: int) -> None:
    saved = begun("pong", before, "model.hidden=64")
    config, note = auto.resolve("pong", now, ["model.hidden=64"], saved=saved)
    assert auto.fits(saved, config)
    assert config.algorithm == saved.algorithm
    assert ("as this run began" in note) == ((before < 16) != (now < 16))


def test_a_run_with_few_ranks_resumed_on_many_has_a_simulator_each() -> None:
    config, note = auto.resolve("breakout", 20, saved=begun("breakout", 2))
    assert (config.env.n_sim, config.model.torso) == (1, "nips")
    assert "20 ranks × 1 simulators = 20, the nearest to the 16" in note


def test_a_run_with_another_recipe_is_refused_later_with_the_reason() -> None:
    saved = loading.load("fast", ["model.torso=nature"])
    assert auto.resolve("breakout", 2, saved=saved).config == begun("breakout", 2)
