"""Show how far runs are: a line for each.

python -m dba3c.status runs/*
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path
from dba3c.reporting import status
from dba3c.run_files.logs import run_directories

RIGHT = ("steps", "done", "score", "steps/s", "time left", "last line")  # columns of numbers
COLOURS = {"running": "green", "failed": "red", "unreadable": "red", "stopped": "yellow"}
WIDE = 240  # columns, where no terminal sets a limit


def parser() -> Parser:
    parser = Parser(
        prog="dba3c status",
        plugins=True,
        description="Show a line for each run directory: game, preset (and how many settings differ from it), state,"
        " steps, newest evaluation or online score, pace, time left, and how long ago the last line was written. A run"
        " is running while a job holds its lock; finished if it reached its target or did all steps; stopped if a"
        " signal ended it and it was saved; failed otherwise.",
    )
    parser.add_argument(
        "paths", type=checked_path, nargs="*", metavar="RUN_DIR", help="run directories (default: all in runs/)"
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: show(argv))


def show(argv: list[str]) -> None:
    paths = parser().parse_args(argv).paths or sorted(Path("runs").glob("*"))
    head, *rows = status.table(status.look(run_directories(paths)))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
