"""metrics.csv: rows that go on where they were, own figures, and files that are damaged."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from dba3c.run_files.table import COLUMNS, GROUPS, Table, tag


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open(encoding="utf-8")))


def test_csv_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    table = Table(path, 0)
    for number in (10, 20, 30):
        table.write({"updates": number})
    Table(path, 20).write({"updates": 25})
    assert [row["updates"] for row in rows(path)] == ["10", "20", "25"]


def test_own_figures_get_columns_behind_the_others(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    table = Table(path, 0)
    table.write({"updates": 1, "entropy": 0.5})
    table.write({"updates": 2, "surprise": 0.25, "entropy": 0.5})
    assert path.read_text(encoding="utf-8").splitlines()[0] == ",".join(COLUMNS) + ",surprise"
    assert [row["surprise"] for row in rows(path)] == ["", "0.25"]
    Table(path, 2).write({"updates": 3})  # a resumed run keeps the column
    assert [row["surprise"] for row in rows(path)] == ["", "0.25", ""]


def test_every_column_has_its_group_in_tensorboard() -> None:
    assert {name for names in GROUPS.values() for name in names} == {*COLUMNS} - {"steps"}
    assert (tag("online_score"), tag("wait_share"), tag("lag")) == ("score/online_score", "time/wait_share", "comm/lag")
    assert tag("surprise") == "loss/surprise"


@pytest.mark.parametrize(
    "text",
    [
        "damaged\n1,2,3\n", "\0\0\0\n10,20\n", "", "a,b\n" + "x" * 200_000 + ",1\n", "updates,updates\n1,2\n",
        "\"updates", "seconds,steps\n1,2\n",
    ],
)  # fmt: skip
@pytest.mark.fault(38, "metrics.csv is damaged", "set aside with a warning; the run resumes", "older metrics")
def test_a_damaged_table_is_set_aside_and_a_new_one_begun(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text, encoding="utf-8")
    told: list[str] = []
    Table(path, 20, told.append).write({"updates": 25})
    assert [row["updates"] for row in csv.DictReader(path.open())][-1:] == ["25"]
    assert path.read_text(encoding="utf-8").startswith("seconds,updates,steps,")
    if told:
        assert "metrics.csv.damaged" in told[0]
        assert (tmp_path / "metrics.csv.damaged").read_text(encoding="utf-8") == text


def test_bytes_that_are_no_text_are_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"\xff\xfe\x00" * 100)
    told: list[str] = []
    Table(path, 20, told.append)
    assert len(told) == 1


@pytest.mark.parametrize("cell", ["", "x", "1e", "9" * 5000, "nan", "-inf"])
def test_a_row_without_its_number_is_left_out(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(f"seconds,updates\n1,10\n2,{cell}\n3\n3,20\n4,30,7\n", encoding="utf-8")
    told: list[str] = []
    Table(path, 20, told.append)
    assert [row["updates"] for row in csv.DictReader(path.open())] == ["10", "20"]
    assert not told


def test_a_fifo_in_its_place_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.csv")
    with pytest.raises(OSError, match="No such device"):
        Table(tmp_path / "metrics.csv", 20)
