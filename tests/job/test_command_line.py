"""Command lines: paths, and output that a narrow encoding can still show."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dba3c.config.messages import ConfigError
from dba3c.job import command_line


@pytest.mark.parametrize("text", ["", "  ", "a\0b"])
@pytest.mark.fault(39, "empty path, as in --run-dir=", "refused in one line, code 2")
def test_an_empty_name_is_no_path(text: str) -> None:
    parser = command_line.Parser()
    parser.add_argument("--out", type=command_line.checked_path)
    with pytest.raises(ConfigError, match=r"argument --out: .*leave it out or give it a name"):
        parser.parse_args([f"--out={text}"])
    assert parser.parse_args(["--out=runs/pong"]).out == Path("runs/pong")


def test_a_value_of_two_dashes_is_refused() -> None:
    """argparse would take --out=-- for an empty list."""
    parser = command_line.Parser()
    parser.add_argument("--out")
    for parse in (parser.parse_args, parser.parse_known_args):
        with pytest.raises(ConfigError, match="--out=--: needs a value"):
            parse(["--out=--"])


def test_letters_that_an_encoding_lacks_are_shown_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert command_line.answer(lambda: print("3.1 ± 0.2 \udce9")) == 0
    sys.stdout.flush()
    assert raw.getvalue() == b"3.1 \\xb1 0.2 \\udce9\n"


def test_a_closed_output_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    command_line.show_any_text()


def test_what_the_system_refuses_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.answer(lambda: print(Path("x" * 5000).read_text(encoding="utf-8"))) == 2
    error = capsys.readouterr().err
    assert error.startswith("dba3c: xxx")
    assert error.count("\n") == 1
