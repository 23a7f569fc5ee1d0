"""Logs of runs: what is read from a run directory, and what is kept of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files import logs
from dba3c.run_files.logs import MOST_ROWS
from tests.fakes.made_up_runs import ended, read, row, write_run


def test_empty_cells_are_no_numbers(tmp_path: Path) -> None:
    rows = [row(1), row(2, evaluation_score=7.5, evaluation_games=10), row(3) | {"online_score": ""}]
    (run,) = read(write_run(tmp_path / "run", rows))
    assert run.evaluated == logs.Evaluated(7.5, 10)
    assert run.newest("online_score") == 4.0
    assert np.isnan(run.column("a column of another version")).all()


def test_an_evaluation_that_only_the_summary_knows_has_its_episodes(tmp_path: Path) -> None:
    """As where metrics.csv could not be written at the end; older versions did not write evaluation_games."""
    rows = [row(1)]
    new = write_run(tmp_path / "new", rows, ended(rows, evaluation_score=7.5, evaluation_games=50))
    old = write_run(tmp_path / "old", rows, ended(rows, evaluation_score=7.5))
    unknown = write_run(tmp_path / "unknown", rows, ended(rows, evaluation_score=7.5, evaluation_games=None))
    assert [run.evaluated for run in read(new, old, unknown)] == [(7.5, 50, 0), (7.5, 0, 0), (7.5, 0, 0)]


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


def test_names_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, [row(1)]) for name in ("a/pong", "b/pong", "b/other")]
    assert [run.name for run in read(*paths, paths[0])] == ["a/pong", "b/pong", "b/other"]
    assert read(paths[0])[0].name == "pong"


def test_logs_are_thinned_and_keep_evaluations_and_sums(tmp_path: Path) -> None:
    rows = [row(n, dropped=2, **({"evaluation_score": float(n)} if n % 100 == 0 else {})) for n in range(1, 2001)]
    path = write_run(tmp_path / "long", rows, ended(rows))
    (long,) = read(path)
    (short,) = read(logs.export_logs(path, long, tmp_path / "logs"))
    assert short.rows == MOST_ROWS
    for name in ("steps", "seconds", "online_score"):
        assert short.newest(name) == long.newest(name)
        assert short.column(name)[0] == long.column(name)[0]
    scores = short.column("evaluation_score")
    assert scores[~np.isnan(scores)].tolist() == list(np.arange(100.0, 2001.0, 100.0))
    assert (short.column("steps") / 10_000)[~np.isnan(scores)].tolist() == list(np.arange(100.0, 2001.0, 100.0))
    assert short.column("dropped").sum() == 4000
    assert (short.config, short.summary) == (long.config, long.summary)
    assert (tmp_path / "logs" / "long" / "metrics.csv").stat().st_size < 50_000


def test_short_logs_stay_as_they_are(tmp_path: Path) -> None:
    path = write_run(tmp_path / "short", [row(n) | {"online_score": ""} for n in (1, 2, 3)])
    (whole,) = read(path)
    (copy,) = read(logs.export_logs(path, whole, tmp_path / "logs"))
    assert whole.metrics.keys() == copy.metrics.keys()
    for name, column in whole.metrics.items():
        np.testing.assert_array_equal(copy.metrics[name], column, err_msg=name)


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        read(path)
    assert len(str(error.value)) < 1100
    return str(error.value)


@pytest.mark.parametrize("name", ["steps", "seconds", "updates", "cores", "ranks", "evaluation_score", "best_score"])
@pytest.mark.parametrize("value", ['"many"', "[1]", "{}", "true", "NaN", "Infinity", "1e999", "1" * 400, "-1e300"])
@pytest.mark.fault(38, "text where summary.json has numbers", "refused in one line, code 2")
def test_a_summary_with_anything_but_numbers_in_their_place_is_refused(tmp_path: Path, name: str, value: str) -> None:
    path = write_run(tmp_path / "run", [row(1)])
    (path / "summary.json").write_text(f'{{"{name}": {value}}}', encoding="utf-8")
    assert f"summary.json: {name}=" in refused(path)


@pytest.mark.parametrize("text", ["[", "[]", "3", "[" * 100_000, '{"steps": ' + "1" * 5000 + "}", "\0", "", "\ud800"])
def test_a_summary_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    path = write_run(tmp_path / "run", [row(1)])
    (path / "summary.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert "summary.json" in refused(path)


@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv", "summary.json"])
def test_files_without_end_and_fifos_are_refused(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "run", [row(1)])
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to("/dev/zero")
    assert name in refused(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    assert name in refused(path)
    (path / name).unlink()
    with (path / name).open("wb") as file:
        file.truncate(2**40)
    assert f"{name} has 1,099,511,627,776 bytes" in refused(path)


def test_numbers_that_nobody_could_draw_count_as_empty(tmp_path: Path) -> None:
    rows = [row(1), row(2, online_score=float("inf")), row(3, online_score=1e300), row(4) | {"steps": "9" * 400}]
    (run,) = read(write_run(tmp_path / "run", rows))
    assert np.isnan(run.column("online_score")).tolist() == [False, True, True, False]
    assert np.isnan(run.column("steps")).tolist() == [False, False, False, True]


def test_a_table_without_end_of_line_or_with_too_many_cells_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path / "run", [row(n) for n in range(1, 100)])
    (path / "metrics.csv").write_text("updates," + "x" * 300_000, encoding="utf-8")
    assert "metrics.csv" in refused(path)
    (path / "metrics.csv").write_text("updates," * 3000 + "\n" + "1," * 3000, encoding="utf-8")
    assert "metrics.csv: has more than" in refused(path)
    monkeypatch.setattr(logs, "MOST_CELLS", 100)
    (path / "metrics.csv").write_text("updates,steps\n" + "1,2\n" * 60, encoding="utf-8")
    assert "metrics.csv: has more than 100 cells" in refused(path)


def test_names_are_printable(tmp_path: Path) -> None:
    (run,) = read(write_run(tmp_path / os.fsdecode(b"a\xff\n\x1bb"), [row(1)]))
    assert run.name == "a���b"
