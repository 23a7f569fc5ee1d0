"""Logs of runs: what is read from a run directory, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
    assert [run.evaluated for run in read(new, old, unknown)] == [(7.5, 50), (7.5, 0), (7.5, 0)]


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
