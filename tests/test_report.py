"""report: a page about runs that needs nothing else, and bad input refused in one line."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dba3c.report import main
from tests.fakes.made_up_runs import ended, row, write_run


class Links(HTMLParser):
    """What a page wants to load, and the texts of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wanted += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "input", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Two seeds of Breakout, one of them unfinished, and Pong in the middle of its first row."""
    folder = tmp_path_factory.mktemp("report")
    rows = [row(n, evaluation_score=3.0 * n, evaluation_games=50) for n in range(1, 6)]
    paths = [
        write_run(folder / "<b>zero", rows, ended(rows, evaluation_score=15.0, best_score=16.0)),
        write_run(folder / "one", rows[:3], overrides=("train.seed=1",)),
        write_run(folder / "pong", [], overrides=("env.game=pong",)),
    ]
    (folder / "one" / "film no. 1.mp4").touch()
    assert main([*map(str, paths), "--out", str(folder / "out")]) == 0
    return (folder / "out" / "index.html").read_text(encoding="utf-8"), folder / "out"


def test_the_page_holds_everything_itself(page: tuple[str, Path]) -> None:
    text, _ = page
    links = Links()
    links.feed(text)
    assert links.open == []
    assert {link for link in links.wanted if not link.startswith("#")} == {"../one/film%20no.%201.mp4"}
    assert text.count("<svg") == 6  # scores and all games twice, pace, shares
    assert set(re.findall(r"url\((.)", text)) == {"#"}  # a clip path of the same picture
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(set(identifiers)) == len(identifiers)
    assert "<script" not in text


def test_the_page_tells_of_every_run(page: tuple[str, Path]) -> None:
    text, folder = page
    assert "<b>" not in text
    plain = re.sub(r"<[^>]+>", " ", text.replace("<wbr>", ""))
    for words in ("&lt;b&gt;zero", "unfinished", "15.0 (50)", f"{(15 - 1.7) / 28.8:.0%}", "env.game", "pong"):
        assert words in plain
    names = {file.name for file in folder.iterdir()} - {"index.html"}
    assert {"breakout-steps.svg", "breakout-minutes.svg", "human-steps.svg", "pace.svg"} <= names
    assert not any(name.startswith("pong") for name in names)  # nothing to draw yet
    for name in names:
        assert ElementTree.parse(folder / name).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_curves_come_before_tables_and_each_score_once(page: tuple[str, Path]) -> None:
    text, _ = page
    assert text.index("<svg") < text.index("<table")
    assert text.count("15.0 (50)") == 1
    assert text.count(">16.0<") == 1


def test_the_page_switches_between_steps_and_minutes(page: tuple[str, Path]) -> None:
    text, _ = page
    assert 'id="steps" checked' in text
    assert text.count('class="by-steps"') == text.count('class="by-minutes"') == 2  # Breakout, all games
    assert "#steps:checked ~ main .by-minutes" in text


def test_each_run_has_its_command(page: tuple[str, Path]) -> None:
    text, _ = page
    assert "mpirun -np 2 python -m dba3c.train --preset a2c --run-dir runs/breakout<" in text
    assert "--preset a2c --train.seed=1 --run-dir runs/breakout<" in text


def test_the_published_report_is_small(tmp_path: Path) -> None:
    runs = sorted((Path(__file__).parents[1] / "docs" / "runs").iterdir())
    assert main([*map(str, runs), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "index.html").stat().st_size < 1_000_000


def test_report_refuses_bad_input_in_one_line_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    broken = write_run(tmp_path / "broken", [row(1)])
    (broken / "config.yaml").write_text("env: {gaem: pong}", encoding="utf-8")
    (tmp_path / "file").touch()
    good = write_run(tmp_path / "good", [row(1)])
    cases = [
        (["nowhere"], "nowhere: no such run directory; name one"),
        ([str(tmp_path / "empty")], "holds no metrics.csv; name the run directory"),
        ([str(broken)], "gaem"),
        ([str(good), "--out", str(tmp_path / "file")], "cannot be written"),
        ([], "RUN_DIR"),
    ]
    for words, message in cases:
        assert main(words) == 2
        error = capsys.readouterr().err
        assert error.startswith("dba3c: ")
        assert error.count("\n") == 1
        assert message in error


@pytest.mark.fault(
    37,
    "config.yaml that names a path as its game: dba3c report",
    "refused in one line, code 2; nothing is written",
)
def test_a_run_cannot_choose_where_its_pictures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [row(1), row(2)])
    text = (run / "config.yaml").read_text(encoding="utf-8").replace("game: breakout", "game: ../../escaped")
    (run / "config.yaml").write_text(text, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert main([str(run), "--out", str(tmp_path / "deep" / "out")]) == 2
    assert "plain name" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["a$b$c", "$\\frac{$", "_hidden", "a\nb", os.fsdecode(b"caf\xe9"), "\\n"])
@pytest.mark.fault(38, "odd name of a run, such as a$b", "the report is written")
def test_any_name_of_a_run_can_be_drawn(tmp_path: Path, name: str) -> None:
    rows = [row(1), row(2)]
    run = write_run(tmp_path / name, rows, ended(rows, ranks=None, cores=None))
    assert main([str(run), "--out", str(tmp_path / "out")]) == 0


def test_a_path_that_the_system_refuses_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["x" * 5000], ["--out=", str(tmp_path)], ["a\0b"]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert error.startswith("dba3c: ")
        assert error.count("\n") == 1
