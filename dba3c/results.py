"""Write the table of results from the small logs that are kept in the repository.

python -m dba3c.results docs/runs docs/results.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path
from dba3c.reporting import markdown
from dba3c.reporting.groups import Group, grouped
from dba3c.run_files import logs, write_atomically


def parser() -> Parser:
    parser = Parser(prog="dba3c results", description="Write the table of results from the logs of runs.")
    parser.add_argument("folder", type=checked_path, metavar="FOLDER", help="folder that holds the logs of each run")
    parser.add_argument(
        "file", type=checked_path, metavar="FILE.md", help="page to write; its picture is written beside it"
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: write(argv))


def write(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    runs = logs.read_all(options.folder)
    groups = sorted(grouped(runs), key=lambda group: (group.game, group.name))
    try:
        picture = draw(groups, options.file.with_suffix(".png"))
        write_atomically(options.file, markdown.page(groups, str(options.folder), picture).encode())
    except OSError as error:
        raise ConfigError(f"{options.file}: cannot be written: {error.strerror}; choose another file") from None
    print(f"{options.file}: {len(groups)} rows from {len(runs)} runs")


def draw(groups: list[Group], file: Path) -> str | None:
    """Draw human-normalised online scores, which games can share, against minutes; return the picture's name."""
    if not groups:
        return None
    from dba3c.reporting import figures  # loads Matplotlib, which --help and refusals need not wait for

    plots = {plot.name: plot for section in figures.sections(groups, "minutes") for plot in section.plots}
    if "human-online" not in plots:
        return None
    write_atomically(file, figures.png(plots["human-online"], figures.LIGHT))
    return file.name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
