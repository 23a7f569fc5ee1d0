"""The words of a command line: the game in its many places, the run directory, and what a dry run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c import train
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.training import order
from tests.fakes.settings import settings


def asked(*words: str, size: int | None = None) -> order.Request:
    return order.request(train.parser(), list(words), size)


@pytest.mark.parametrize("words", [("pong",), ("--game", "Pong"), ("--env.game=ALE/Pong-v5",), ("PongNoFrameskip-v4",)])
def test_the_game_may_be_the_first_word_or_an_option(words: tuple[str, ...]) -> None:
    found = train.parse([*words, "--train.seed", "3"], ranks=2)
    assert (found.config.env.game, found.config.train.seed, found.run_dir) == ("pong", 3, Path("runs/pong"))
    assert "chose ppo for pong: 2 ranks × 8 simulators" in found.note


def test_without_words_it_is_breakout() -> None:
    assert train.parse([]).config == loading.load("fast", ["env.n_sim=16"])


@pytest.mark.parametrize("ranks", [1, 2, 3, 16, 64])
def test_the_papers_preset_is_the_same_on_any_number_of_ranks(ranks: int) -> None:
    assert train.parse(["--preset=paper"], ranks) == (loading.load(), Path("runs/breakout"), "")


def test_the_old_name_of_a_preset_is_answered_with_the_new_one() -> None:
    found = train.parse(["pong", "--preset=paac"])
    assert found.config == loading.load("a2c", ["env.game=pong"])
    assert found.note.startswith("preset paac is now called a2c")


def test_a_file_may_name_the_game(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("env: {game: Pong}", encoding="utf-8")
    found = train.parse([f"--config={tmp_path / 'mine.yaml'}"])
    assert (found.config.env.game, found.config.algorithm.name, found.run_dir) == ("pong", "ppo", Path("runs/pong"))


@pytest.mark.parametrize(("ranks", "size", "remedy"), [(0, None, "from 1 to"), (9999, None, "from 1"), (4, 2, "leave")])
def test_ranks_that_cannot_be_are_refused(ranks: int, size: int | None, remedy: str) -> None:
    with pytest.raises(ConfigError, match=f"--ranks={ranks}: .*{remedy}"):
        asked(f"--ranks={ranks}", size=size)


def test_ranks_may_be_said_again_where_they_are() -> None:
    assert asked("--ranks=2", size=2).ranks == 2


def test_the_configuration_of_a_run_counts_once_it_has_checkpoints(tmp_path: Path) -> None:
    written = loading.load("ppo")
    (tmp_path / "config.yaml").write_text(written.dump(), encoding="utf-8")
    assert order.saved_config(tmp_path) is None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "update-1.npz").touch()
    assert order.saved_config(tmp_path) == written
    (tmp_path / "config.yaml").write_text("env: [", encoding="utf-8")
    assert order.saved_config(tmp_path) is None


def test_a_dry_run_says_layout_batch_and_message(tmp_path: Path) -> None:
    words = ["pong", f"--run-dir={tmp_path}", "--train.max_minutes=90", "--train.total_steps=1.5M"]
    told = order.dry_run(train.parse(words, ranks=4), 4)
    for words_of_it in (
        "preset auto chose ppo for pong",
        "4 × 4 simulators = 16",
        "4 × 512 samples = 2,048, for 24 updates",
        "677,943 parameters",
        "2.7 MB from each rank",
        "after 1,500,000 steps (about 17,578 updates), or after 90 minutes, or when the mean of 50 greedy episodes"
        " reaches 20 in 2 evaluations in a row",
        "is new",
    ):
        assert words_of_it in told
    assert not list(tmp_path.iterdir())


def test_replay_memories_that_will_not_fit_the_host_are_refused_with_the_figures() -> None:
    config = settings(
        "algorithm.name=q",
        "algorithm.returns=one_step",
        "experience.capacity_steps=1M",
        "experience.steps_per_update=5",
    )
    order.refuse_large_experience(config, ranks_of_host=2, available=15 * 10**9)
    with pytest.raises(
        ConfigError, match=r"^experience\.capacity_steps=1000000: 3 ranks of this host would keep 21\.2 GB"
    ):
        order.refuse_large_experience(config, ranks_of_host=3, available=15 * 10**9)
