"""dba3c report: run directories → index.html and its pictures."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress

from dba3c.config.messages import ConfigError
from dba3c.job import command_line
from dba3c.job.command_line import Parser
from dba3c.job.process import terminal
from dba3c.reporting.groups import Group, grouped
from dba3c.run_files import logs, write_atomically


def parser() -> Parser:
    parser = Parser(
        prog="dba3c report",
        description="Write one page, index.html, about run directories: learning curves, human-normalised scores, pace,"
        " lag, and what differs between the runs. It needs no network; its pictures lie beside it. Runs whose"
        " configurations differ only in train.seed are drawn as one curve with the range of the seeds. A run may"
        " still be training.",
    )
    parser.add_argument("paths", type=Path, nargs="+", metavar="RUN_DIR", help="run directories")
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="FOLDER", help="default: report")
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
        raise ConfigError(f"--out={options.out}: cannot be written: {error.strerror}; choose another one") from None
    print(f"report: {options.out / 'index.html'}")


def draw(groups: list[Group], folder: Path) -> str:
    """The page, after its pictures were written; a bar shows how far it is."""
    from dba3c.reporting import figures, html  # Matplotlib: --help and refusals need not wait for it

    sections = figures.sections(groups)
    count = sum(len(section.plots) for section in sections)
    console = Console(file=terminal() or None, stderr=True)
    pictures: dict[str, html.Picture] = {}
    with Progress("drawing", BarColumn(), MofNCompleteColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=count)
        for plot in (plot for section in sections for plot in section.plots):
            light, dark = figures.render(plot)
            write_atomically(folder / f"{plot.name}.png", light)
            pictures[plot.name] = html.Picture(light, dark)
            bar.advance(task)
    return html.page(groups, sections, pictures, datetime.now().astimezone())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
