"""The table of results: from run directories to small logs, and from those to a page."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest

from dba3c import results, train
from dba3c.export import main
from dba3c.run_files import logs
from tests.fakes.made_up_runs import ended, row, write_run


def columns(text: str) -> list[dict[str, str]]:
    """The rows of the page's first table."""
    first = text.partition("## By other rules")[0]
    lines = [line.strip("| ").split(" | ") for line in first.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of three runs: two seeds of Breakout with a change, and Pong, which is unfinished."""
    place = tmp_path_factory.mktemp("results")
    rows = [row(n, evaluation_score=10.0 * n, evaluation_games=50) for n in range(1, 7)]
    for seed, score in ((0, 60.0), (1, 80.0)):
        last = [*rows[:-1], rows[-1] | {"evaluation_score": score}]
        overrides = (f"train.seed={seed}", "optimizer.learning_rate=0.002", "env.life_loss_terminal=false")
        path = write_run(place / f"runs/breakout-{seed}", last, ended(last, ranks=4, cores=8), overrides)
        assert main([str(path), "--logs", str(place / "logs")]) == 0
    pong = write_run(place / "runs/pong", [row(1)], overrides=("env.game=pong",), preset="paper-pong")
    assert main([str(pong), "--logs", str(place / "logs")]) == 0
    return place / "logs"


def made(folder: Path) -> str:
    file = folder.parent / "results.md"
    assert results.main([str(folder), str(file)]) == 0
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return made(folder)


def test_a_row_for_each_configuration(page: str) -> None:
    breakout, pong = columns(page)
    assert breakout["game"] == "breakout"
    assert breakout["seeds"] == "0, 1"
    assert breakout["preset"] == "`a2c` (changed)"
    assert breakout["score (episodes)"] == "70.0, 60.0 to 80.0 (50)"
    assert breakout["human-normalised"] == f"{(70 - 1.7) / (30.5 - 1.7):.0%}"
    assert (breakout["steps"], breakout["minutes"], breakout["cores"]) == ("60,000", "1", "8")
    assert breakout["core-hours"] == f"{8 * 60 / 3600:.2f}"
    assert (pong["preset"], pong["score (episodes)"], pong["cores"]) == ("`paper-pong`", "–", "–")


def test_the_rules_have_a_table_of_their_own(page: str) -> None:
    rules = page.partition("## By other rules")[2].partition("## The commands")[0]
    assert "| 1. | breakout | stopped | 60.0, 80.0 | 70.0 (60.0 to 80.0) | – | – | – |" in rules


def test_the_papers_stand_beside(page: str) -> None:
    breakout, pong = (list(cells.values()) for cells in columns(page))
    assert breakout[-4:] == ["350 (0.5 h)", "–", "470.1 (12 h)", "565.3 (15 h)"]
    assert pong[-4:] == ["20 (4 h)", "18 (24 h)", "20.6 (12 h)", "20.9 (15 h)"]
    assert all(words in page for words in ("1801.02852", "read from training curves", "1611.06256", "1705.04862"))


def test_the_command_of_a_row_gives_its_configuration(folder: Path, page: str) -> None:
    loop = next(line for line in page.splitlines() if line.startswith("1. `")).removeprefix("1. `").removesuffix("`")
    assert loop.startswith("for seed in 0 1; do mpirun -np 4 python -m dba3c.train ")
    words = shlex.split(loop.partition("dba3c.train ")[2].partition(";")[0].replace("$seed", "1"))
    order = train.parse(words)
    assert order.run_dir == Path("runs/breakout-1")
    assert order.config == logs.read([folder / "breakout-1"])[0].config
    assert "2. `python -m dba3c.train --preset paper-pong --run-dir runs/pong`" in page


def test_the_picture_lies_beside(folder: Path, page: str) -> None:
    assert "![learning curves](results.svg)" in page
    assert (folder.parent / "results.svg").read_bytes().startswith(b"<svg")


def test_the_same_logs_give_the_same_page(folder: Path, page: str) -> None:
    picture = (folder.parent / "results.svg").read_bytes()
    assert (made(folder), (folder.parent / "results.svg").read_bytes()) == (page, picture)


def test_a_misspelt_folder_is_refused_and_the_table_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "results.md"
    table.write_text("kept", encoding="utf-8")
    assert results.main([str(tmp_path / "lgos"), str(table)]) == 2
    assert "lgos: no such folder; name one that dba3c export --logs has written" in capsys.readouterr().err
    assert table.read_text(encoding="utf-8") == "kept"


def test_without_logs_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = made(tmp_path / "logs")
    assert "There are no logs in" in text
    assert "|" not in text
    assert not (tmp_path / "results.svg").exists()


def test_a_place_that_cannot_be_written_is_code_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main([str(folder), str(folder / "nowhere" / "results.md")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_score_just_below_chance_is_no_negative_zero(tmp_path: Path) -> None:
    last = [row(1, evaluation_score=125.0, evaluation_games=50)]
    write_run(tmp_path / "logs/qbert", last, ended(last), ("env.game=qbert",))
    (qbert,) = columns(made(tmp_path / "logs"))
    assert qbert["human-normalised"] == "0%"


def test_a_table_for_programs(folder: Path) -> None:
    file = folder.parent / "results.csv"
    assert results.main([str(folder), str(folder.parent / "results.md"), "--csv", str(file)]) == 0
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    assert [(row["run"], row["game"], row["seed"]) for row in rows] == [
        ("breakout-0", "breakout", "0"), ("breakout-1", "breakout", "1"), ("pong", "pong", "0"),
    ]  # fmt: skip
    assert (rows[1]["evaluation_score"], rows[1]["evaluation_games"], rows[1]["ended"]) == ("80", "50", "true")
    assert rows[0]["changes"] == "--env.life_loss_terminal=false --optimizer.learning_rate=0.002"
    assert (rows[2]["evaluation_score"], rows[2]["cores"], rows[2]["ended"]) == ("", "", "false")


def test_a_table_that_cannot_be_written_is_refused_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main([str(folder), str(folder.parent / "results.md"), "--csv", "/no/such/place.csv"]) == 2
    assert "there is no folder /no/such" in capsys.readouterr().err


def test_control_tasks_have_a_table_of_their_own(folder: Path, tmp_path: Path) -> None:
    """Beside another system, and without columns for humans and papers."""
    rows = [row(n, evaluation_score=500.0, evaluation_games=50) for n in range(1, 4)]
    path = write_run(tmp_path / "cartpole", rows, ended(rows, cores=2), ("env.game=CartPole-v1",), preset="ppo-control")
    assert main([str(path), "--logs", str(tmp_path / "logs")]) == 0
    for other in folder.iterdir():
        (tmp_path / "logs" / other.name).symlink_to(other)
    found = {"score": 480.25, "episodes": 50, "steps": 51200, "seconds": 99.6, "core_seconds": 31.2}
    compared = {"machine": {"cpu": "a processor"}, "rows": [{"task": "CartPole-v1", "system": "another"} | found]}
    (tmp_path / "control.json").write_text(json.dumps(compared), encoding="utf-8")
    words = [str(tmp_path / "logs"), str(tmp_path / "page.md"), "--control", str(tmp_path / "control.json")]
    assert results.main(words) == 0
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    games, control = text.split("## Control tasks")
    assert "CartPole" not in games
    assert len(columns(games)) == 2
    task, others = control.split("Beside another system")
    (cells,) = columns(task)
    assert (cells["row"], cells["task"], cells["target"], cells["preset"]) == (
        "3.",
        "CartPole-v1",
        "475",
        "`ppo-control`",
    )
    assert "| CartPole-v1 | another | 480.2 (50) | 51,200 | 100 | 31 |" in others
    assert "python -m dba3c.train --preset ppo-control --run-dir runs/CartPole-v1`" in others  # whose game it is


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [1]}', '{"rows": [{"task": "x"}]}'])
def test_a_file_that_bench_control_did_not_write_is_refused(
    folder: Path, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "control.json").write_text(content, encoding="utf-8")
    assert results.main([str(folder), str(tmp_path / "x.md"), "--control", str(tmp_path / "control.json")]) == 2
    assert "is not what dba3c bench control --json writes" in capsys.readouterr().err
