"""What is published hangs together: logs, table of results, README's headline and the agents that come with dba3c."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c import results
from dba3c.run_files import logs, trained_agents
from dba3c.run_files.logs import RunLog

ROOT = Path(__file__).parents[1]
RUNS = logs.read_all(ROOT / "docs" / "runs")


def test_the_page_of_other_algorithms_is_what_its_logs_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pong by the algorithms that are not in the table of results."""
    monkeypatch.chdir(ROOT)
    assert results.main(["docs/atari", str(tmp_path / "atari.md")]) == 0
    assert (tmp_path / "atari.md").read_text(encoding="utf-8") == (ROOT / "docs/atari.md").read_text(encoding="utf-8")


def of_game(game: str) -> list[RunLog]:
    return [run for run in RUNS if run.config.env.game == game]


def test_the_table_of_results_is_what_the_logs_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    compared = map(str, sorted(Path("docs").glob("control*.json")))
    assert results.main(["docs/runs", str(tmp_path / "results.md"), "--control", *compared]) == 0
    kept = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert (tmp_path / "results.md").read_text(encoding="utf-8") == kept


@pytest.mark.parametrize("game", ["breakout", "pong"])
def test_the_headline_is_what_the_logs_say(game: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if line.startswith(f"| {game.title()} |"))
    scores = ", ".join(f"{run.summary['evaluation_score']:.1f}" for run in of_game(game))
    minutes = ", ".join(f"{run.counted('seconds') / 60:.0f}" for run in of_game(game))
    core_hours = ", ".join(f"{run.core_hours:.2f}" for run in of_game(game))
    assert row.startswith(f"| {game.title()} | **{scores}** | {minutes} minutes | {core_hours} |")


@pytest.mark.parametrize("game", sorted({run.config.env.game for run in RUNS if run.config.env.profile == "deepmind"}))
def test_every_game_of_the_table_has_its_agent(game: str) -> None:
    progress = trained_agents.shipped(game, game).progress
    facts = ("updates", "steps", "evaluation_score")
    assert [progress[fact] for fact in facts] in [[run.summary[fact] for fact in facts] for run in of_game(game)]
