"""Write a page about run directories: index.html, and its pictures beside it, for pages that cannot hold it.

python -m dba3c.report runs/pong-0 runs/pong-1 --out pong
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress

from dba3c.config.messages import ConfigError
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path
from dba3c.job.process import terminal
from dba3c.reporting.groups import Group, grouped
from dba3c.run_files import logs, write_atomically


def parser() -> Parser:
    parser = Parser(
        prog="dba3c report",
        plugins=True,
        description="Write one page, index.html, about run directories: learning curves against steps or minutes,"
        " losses, pace, lag, commands, and the settings that differ. The page loads nothing from the network. Runs"
        " whose configurations differ only in train.seed become one curve with the range of the seeds. Runs may still"
        " be training.",
    )
    parser.add_argument(
        "paths",
        type=checked_path,
        nargs="+",
        metavar="RUN_DIR",
        help="run directory, or folder of a sweep; several are compared",
    )
    parser.add_argument(
        "--out",
        type=checked_path,
        default=Path("report"),
        metavar="FOLDER",
        help="folder to write (default: report)",
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: write(argv))


def write(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    groups = grouped(logs.read(options.paths))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        page = draw(groups, options.out)
        write_atomically(options.out / "index.html", page.encode())
    except OSError as error:
        raise ConfigError(f"--out={options.out}: cannot be written: {error.strerror}; choose another folder") from None
    print(f"report: {options.out / 'index.html'}")


def draw(groups: list[Group], folder: Path) -> str:
    """Write the pictures, under a progress bar, and return the page that holds them."""
    from dba3c.reporting import drawing, figures, html  # loads Matplotlib, which --help and refusals need not wait for

    overview, details = figures.overview(groups), figures.details(groups)
    plots = [plot for section in (*overview, *details) for plot in section.plots]
    console = Console(file=terminal() or None, stderr=True)
    pictures: dict[str, str] = {}
    with Progress("drawing", BarColumn(), MofNCompleteColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=len(plots))
        for plot in plots:
            pictures[plot.name] = drawing.svg(plot)
            write_atomically(folder / f"{plot.name}.svg", drawing.alone(pictures[plot.name]))
            bar.advance(task)
    return html.page(html.Content(groups, overview, details, pictures, folder, datetime.now().astimezone()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
