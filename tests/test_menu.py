"""The menu, and the words that only tell: help, games, config."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c import games, show_config
from dba3c.__main__ import COMMANDS, main
from dba3c.config import loading


def test_the_menu_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code in (([], 2), (["help"], 0), (["--help"], 0)):
        assert main(words) == code
        shown = capsys.readouterr().out
        assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["help", command])
    except SystemExit as ended:  # argparse's way
        code = int(ended.code or 0)
    assert code == 0
    assert capsys.readouterr().out.startswith(f"usage: dba3c {command}")


def test_a_misspelled_command_is_refused_with_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert capsys.readouterr().err == "dba3c: trian: no such command; did you mean train?\n"


def test_games_are_listed_with_scores_and_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert games.main([]) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert shown["pong"] == ["-20.7", "14.6", "20", "20.8", "ppo"]
    assert shown["breakout"][-1] == "fast"
    assert shown["skiing"] == ["-17,098.1", "-4,336.9", "–", "–", "ppo"]
    assert shown["catch"][-1] == "catch"
    assert "warlords" not in shown


def test_config_prints_what_train_would_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_config.main(["--preset=ppo", "--game=Pong", "--train.seed=3"]) == 0
    shown = capsys.readouterr().out
    assert loading.parse(shown) == loading.load("ppo", ["env.game=pong", "train.seed=3"])
    (tmp_path / "mine.yaml").write_text(shown, encoding="utf-8")
    assert show_config.main(["--config", str(tmp_path / "mine.yaml")]) == 0
    assert capsys.readouterr().out == shown


def test_config_says_what_auto_chose(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_config.main(["qbert", "--ranks=4"]) == 0
    note, rest = capsys.readouterr().out.split("\n", 1)
    assert note.startswith("# preset auto chose ppo for qbert: 4 ranks × 4 simulators = 16")
    assert loading.parse(rest) == loading.load("ppo", ["env.game=qbert", "env.n_sim=4"])
    assert show_config.main(["--preset=nonsense"]) == 2
    assert "no such preset" in capsys.readouterr().err
