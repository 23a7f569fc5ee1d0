"""Write the table of results from the small logs that are kept in the repository.

python -m dba3c.results docs/runs docs/results.md
python -m dba3c.results docs/runs docs/results.md --csv results.csv
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path, new_file
from dba3c.reporting import markdown, tables
from dba3c.reporting.groups import Group, grouped
from dba3c.run_files import logs, write_atomically
from dba3c.types import Json


def parser() -> Parser:
    text = "Write the table of results from the logs of runs."
    parser = Parser(prog="dba3c results", plugins=True, description=text)
    parser.add_argument("folder", type=checked_path, metavar="FOLDER", help="folder that holds the logs of each run")
    parser.add_argument(
        "file", type=checked_path, metavar="FILE.md", help="page to write; its picture is written beside it"
    )
    parser.add_argument(
        "--control", type=checked_path, nargs="+", metavar="FILE", help="what dba3c bench control --json wrote"
    )
    parser.add_argument("--csv", type=new_file, metavar="FILE", help="also write a table with a line for each run")
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: write(argv))


def write(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    runs = logs.read_all(options.folder)
    compared = read_compared(options.control) if options.control else None
    groups = sorted(grouped(runs), key=lambda group: (markdown.is_control(group), group.game, group.name))
    try:
        picture = draw(groups, options.file.with_suffix(".svg"))
        write_atomically(options.file, markdown.page(groups, str(options.folder), picture, compared).encode())
        if options.csv is not None:
            write_atomically(options.csv, tables.as_csv(tables.results(groups)).encode())
    except OSError as error:
        raise ConfigError(
            f"{error.filename or options.file}: cannot be written: {error.strerror}; choose another file"
        ) from None
    print(f"{options.file}: {len(groups)} rows from {len(runs)} runs")


def read_compared(files: list[Path]) -> Json:
    """Read what dba3c bench control wrote, and put it together; ConfigError if it is something else."""
    every: list[Json] = []
    for file in files:
        try:
            every.append(json.loads(file.read_text(encoding="utf-8")))
            markdown.compared_table(every[-1])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"--control={file}: is not what dba3c bench control --json writes: {error!r}") from None
    return every[0] | {"rows": [row for found in every for row in found["rows"]]}


def draw(groups: list[Group], file: Path) -> str | None:
    """Draw human-normalised online scores, which games can share, against minutes; return the picture's name."""
    if not groups:
        return None
    from dba3c.reporting import drawing, figures  # loads Matplotlib, which --help and refusals need not wait for

    plots = {plot.name: plot for plot in figures.normalised(groups, figures.colours(groups))[0]}
    if "human-minutes" not in plots:
        return None
    write_atomically(file, drawing.alone(drawing.svg(plots["human-minutes"])))
    return file.name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
