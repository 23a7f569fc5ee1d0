"""Reports: what is read from run directories, what is made of it, and a page that needs nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from ale_py import roms

from dba3c.config import loading, nearest_preset
from dba3c.report import main
from dba3c.reporting import figures, groups, tables
from dba3c.reporting.groups import differing, grouped
from dba3c.reporting.html import breakable
from dba3c.reporting.published import PAPERS, RANDOM_HUMAN, human_normalised
from dba3c.run_files import logs
from tests.fakes.made_up_runs import ended, row, write_run

ROOT = Path(__file__).parents[1]


def read(*paths: Path) -> list[logs.RunLog]:
    return logs.read(list(paths))


def cell(run: logs.RunLog, name: str) -> str:
    head, line = tables.runs([groups.Group(run.name, [run])])
    return line[head.index(name)]


def test_empty_cells_are_no_numbers(tmp_path: Path) -> None:
    rows = [row(1), row(2, evaluation_score=7.5, evaluation_games=10), row(3) | {"online_score": ""}]
    (run,) = read(write_run(tmp_path / "run", rows))
    assert run.evaluated == logs.Evaluated(7.5, 10)
    assert run.newest("online_score") == 4.0
    assert np.isnan(run.column("a column of another version")).all()
    x, y = groups.curve(run, "minutes", "evaluation_score")
    assert (x.tolist(), y.tolist()) == ([20 / 60], [7.5])


def test_an_evaluation_that_only_the_summary_knows_has_its_episodes(tmp_path: Path) -> None:
    """As where metrics.csv could not be written at the end; older versions did not write evaluation_games."""
    rows = [row(1)]
    new = write_run(tmp_path / "new", rows, ended(rows, evaluation_score=7.5, evaluation_games=50))
    old = write_run(tmp_path / "old", rows, ended(rows, evaluation_score=7.5))
    unknown = write_run(tmp_path / "unknown", rows, ended(rows, evaluation_score=7.5, evaluation_games=None))
    assert [run.evaluated for run in read(new, old, unknown)] == [(7.5, 50), (7.5, 0), (7.5, 0)]
    assert [cell(run, "evaluation (episodes)") for run in read(new, old)] == ["7.5 (50)", "7.5"]


def test_of_updates_that_were_made_twice_the_later_rows_count(tmp_path: Path) -> None:
    """A crash after update 400, and a resumed run from update 200."""
    rows = [row(n) for n in (1, 2, 3, 4)] + [row(3, online_score=50.0), row(5, online_score=60.0)]
    (run,) = read(write_run(tmp_path / "run", rows))
    assert run.column("updates").tolist() == [100, 200, 300, 500]
    assert run.column("online_score").tolist() == [2.0, 4.0, 50.0, 60.0]


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [row(1), row(2)])
    with (path / "metrics.csv").open("a", encoding="utf-8") as file:
        file.write("31.0,")
    assert read(path)[0].column("updates").tolist() == [100, 200]


def test_a_resumed_run_is_past_its_summary(tmp_path: Path) -> None:
    rows = [row(n) for n in range(1, 7)]
    run, same = read(
        write_run(tmp_path / "resumed", rows, ended(rows[:3])), write_run(tmp_path / "over", rows, ended(rows))
    )
    assert (run.ended, same.ended) == (False, True)
    assert run.counted("steps") == 60_000
    assert run.core_hours == pytest.approx(2 * 60 / 3600)
    assert (cell(run, "state"), cell(run, "minutes"), cell(run, "ranks")) == ("unfinished", "1.0", "2")


def test_an_unfinished_run_has_no_ranks_yet(tmp_path: Path) -> None:
    (run,) = read(write_run(tmp_path / "run", [row(1)]))
    assert (cell(run, "ranks"), cell(run, "core-hours"), cell(run, "online")) == ("–", "–", "2.0")
    assert cell(run, "human-normalised") == f"{(2 - 1.7) / (30.5 - 1.7):.0%} (online)"


def test_runs_that_differ_only_in_the_seed_are_one_group(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"s{seed}", [row(1)], overrides=(f"train.seed={seed}",)) for seed in (0, 1, 2)]
    other = write_run(tmp_path / "other", [row(1)], overrides=("train.seed=1", "optimizer.learning_rate=0.01"))
    groups = grouped(read(paths[0], other, *paths[1:]))
    assert [group.seeds for group in groups] == [[0, 1, 2], [1]]
    assert [group.name for group in groups] == ["s (3 runs)", "other"]
    assert differing(groups) == {"optimizer.learning_rate": [0.0007, 0.01]}


def test_groups_whose_short_names_are_the_same_have_long_ones(tmp_path: Path) -> None:
    runs = [("s0", 0, 0.1), ("s1", 1, 0.1), ("s2", 0, 0.2), ("s3", 1, 0.2)]
    overrides = {name: (f"train.seed={seed}", f"optimizer.learning_rate={rate}") for name, seed, rate in runs}
    groups = grouped(read(*(write_run(tmp_path / name, [row(1)], overrides=o) for name, o in overrides.items())))
    assert [group.name for group in groups] == ["s0 … s1 (2 runs)", "s2 … s3 (2 runs)"]


def test_a_group_whose_runs_have_nothing_in_common_has_a_long_name(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, [row(1)]) for name in ("first", "second"))
    (group,) = grouped(read(first, second))
    assert group.name == "first … second (2 runs)"


def test_only_names_are_broken() -> None:
    assert breakable("optimizer.learning_rate = 0.1") == "optimizer.<wbr>learning_<wbr>rate = 0.1"


def test_names_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, [row(1)]) for name in ("a/pong", "b/pong", "b/other")]
    assert [run.name for run in read(*paths, paths[0])] == ["a/pong", "b/pong", "b/other"]
    assert read(paths[0])[0].name == "pong"


def test_a_band_is_mean_least_and_greatest_where_all_runs_have_been() -> None:
    one = np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0])
    two = np.array([5.0, 15.0]), np.array([25.0, 35.0])
    band = groups.band([one, two], points=3)
    assert band is not None
    assert band.x.tolist() == [5.0, 10.0, 15.0]
    assert (band.low.tolist(), band.high.tolist()) == ([5.0, 10.0, 15.0], [25.0, 30.0, 35.0])
    assert band.mean.tolist() == [15.0, 20.0, 25.0]
    assert groups.band([one, (np.zeros(0), np.zeros(0))]) is None


def test_shares_are_weighted_by_time_and_add_up_to_one(tmp_path: Path) -> None:
    rows = [row(1, env_share=0.0), row(4, env_share=0.4)]  # 10 s and 30 s
    shares = figures.time_shares(groups.Group("", read(write_run(tmp_path / "run", rows))))
    assert shares[0] == pytest.approx(0.3)
    assert shares.sum() == pytest.approx(1.0)


def test_curves_have_holes_where_nothing_was_logged() -> None:
    x = np.append(np.arange(10.0), [500.0, 501.0])
    assert np.flatnonzero(np.isnan(figures.unbridged(x, x)[0])).tolist() == [10]


def test_what_did_not_happen_is_said_and_not_drawn(tmp_path: Path) -> None:
    rows = [row(n, dropped=3, skipped=0) for n in (1, 2, 3)]
    groups = grouped(read(write_run(tmp_path / "run", rows)))
    section = figures.sections(groups)[-1]
    assert [plot.name for plot in section.plots] == ["dropped"]
    assert "None here: lag, skipped updates." in section.note
    assert figures.Curves("", "steps", "dropped", total=True).of(groups[0])[0][1].tolist() == [3, 6, 9]


def test_human_normalised_scores() -> None:
    assert human_normalised("breakout", 1.7) == 0.0
    assert human_normalised("breakout", 30.5) == 1.0
    assert human_normalised("pong", 20.9) == pytest.approx(41.6 / 35.3)
    assert human_normalised("casino", 1.0) is None
    published = {game for paper in PAPERS for game in paper.scores}
    assert len(RANDOM_HUMAN) == 57
    assert set(RANDOM_HUMAN) | published <= set(roms.get_all_rom_ids())
    assert all(random < human for random, human in RANDOM_HUMAN.values())


@pytest.mark.parametrize("preset", ["fast", "paac", "ppo", "paper", "paper-pong"])
def test_a_recipe_gives_the_configuration_back(preset: str) -> None:
    changes = ["optimizer.learning_rate=0.002", "env.life_loss_terminal=true", "train.seed=4", "env.game=seaquest"]
    wanted = loading.load(preset, changes)
    found = nearest_preset.recipe(wanted)
    assert found.preset == preset
    overrides = [f"{name}={nearest_preset.shown(value)}" for name, value in found.overrides.items()]
    assert loading.load(found.preset, overrides) == wanted


class Links(HTMLParser):
    """What a page wants to load, and the texts of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wanted += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "source", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Two seeds of Breakout, one of them unfinished, and Pong in the middle of its first row."""
    folder = tmp_path_factory.mktemp("report")
    rows = [row(n, evaluation_score=3.0 * n, evaluation_games=50) for n in range(1, 6)]
    paths = [
        write_run(folder / "<b>zero", rows, ended(rows, evaluation_score=15.0, best_score=15.0)),
        write_run(folder / "one", rows[:3], overrides=("train.seed=1",)),
        write_run(folder / "pong", [], overrides=("env.game=pong",)),
    ]
    assert main([*map(str, paths), "--out", str(folder / "out")]) == 0
    return (folder / "out" / "index.html").read_text(encoding="utf-8"), folder / "out"


def test_the_page_holds_everything_itself(page: tuple[str, Path]) -> None:
    text, _ = page
    links = Links()
    links.feed(text)
    assert links.open == []
    assert len(links.wanted) >= 12
    assert all(link.startswith("data:image/png;base64,iVBOR") for link in links.wanted)
    assert "url(" not in text
    assert "<script" not in text


def test_the_page_tells_of_every_run(page: tuple[str, Path]) -> None:
    text, folder = page
    assert "<b>" not in text
    plain = re.sub(r"<[^>]+>", " ", text.replace("<wbr>", ""))
    for words in ("&lt;b&gt;zero", "unfinished", "15.0 (50)", f"{(15 - 1.7) / 28.8:.0%}", "env.game", "pong"):
        assert words in plain
    names = {file.name for file in folder.iterdir()} - {"index.html"}
    assert {"breakout-online-steps.png", "breakout-evaluation-minutes.png", "human-evaluation.png", "pace.png"} <= names
    assert not any(name.startswith("pong") for name in names)  # nothing to draw yet
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_bad_input_is_one_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_the_command_starts_without_tensorflow() -> None:
    check = (
        "import sys; from dba3c.__main__ import main; main(['report', 'nowhere']); print('tensorflow' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr.startswith("dba3c: nowhere")) == ("False\n", True)
