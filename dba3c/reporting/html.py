"""The page of a report: one HTML file with its style and its pictures inside, and no script."""

from __future__ import annotations

import os
import re
from datetime import datetime
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from dba3c.config.comparison import recipe
from dba3c.reporting import tables
from dba3c.reporting.figures import ACROSS, Section
from dba3c.reporting.groups import Group
from dba3c.run_files.logs import RunLog

STYLE = Path(__file__).with_name("page.css")
NUMERIC_COLUMNS = {  # of all tables; their cells are aligned right
    "seed", "steps", "minutes", "steps/s", "ranks", "cores", "core-hours", "online", "evaluation (episodes)", "best",
    "human-normalised",
}  # fmt: skip


class Content(NamedTuple):
    """What a page is made of."""

    groups: list[Group]
    overview: list[Section]  # before the tables
    details: list[Section]  # after them
    pictures: dict[str, str]  # name of a plot → its SVG element
    folder: Path  # that the page is written to
    now: datetime


def page(content: Content) -> str:
    groups = content.groups
    games = ", ".join(sorted({group.game.replace("_", " ") for group in groups}))
    header = f"<h1>{escape(games)}</h1><p>{plural(sum(len(g.runs) for g in groups))} · {content.now:%Y-%m-%d %H:%M}</p>"
    body = [
        *(part(section.title, section.note, plots(section, content.pictures)) for section in content.overview),
        part("Runs", "", table(tables.runs(groups))),
        *(part(section.title, section.note, plots(section, content.pictures)) for section in content.details),
        part("Settings", "", table(tables.settings(groups), "words") + differences(groups)),
        part("Run by run", COMMANDS, "".join(one_run(run, content.folder) for g in groups for run in g.runs)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>dba3c: {escape(games)}</title>\n"
        f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        f"<header>{header}</header>\n{switch()}\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


COMMANDS = "The command that repeats each run, its film if the run directory holds one, and its whole configuration."


def switch() -> str:
    """Return the choice between steps and minutes; the style sheet hides the pictures of the other one."""
    return "<span>against</span>" + "".join(
        f'<input type="radio" name="across" id="{x}"{" checked" * (x == ACROSS[0])}><label for="{x}">{x}</label>'
        for x in ACROSS
    )


def plural(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def part(title: str, note: str, content: str) -> str:
    """Return a section of the page."""
    words = f"<p>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{words}{content}</section>"


def table(rows: tables.Rows, kind: str = "") -> str:
    """Return a table that scrolls sideways on a narrow screen, while its first column stays."""
    head, *lines = rows
    kinds = [' class="number"' if name in NUMERIC_COLUMNS else "" for name in head]

    def cells(row: list[str], tag: str) -> str:
        return "".join(f"<{tag}{kind}>{breakable(text)}</{tag}>" for kind, text in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in lines)
    content = f"<thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table class="{kind}">{content}</table></div>'


def breakable(text: str) -> str:
    """Let names, but not numbers, break after a dot or an underscore where a column is narrow."""
    return re.sub(r"([._])(?=[a-z])", r"\1<wbr>", escape(text))


def differences(groups: list[Group]) -> str:
    """Return the table of differing keys; nothing for a single group."""
    if len(groups) == 1:
        return ""
    return f"<h3>Keys that differ</h3>{table(tables.differences(groups))}"


def plots(section: Section, pictures: dict[str, str]) -> str:
    figures = [
        f'<figure class="{f"by-{plot.across}" if plot.across else ""}" role="img" aria-label="{escape(plot.title)}">'
        f"{pictures[plot.name]}</figure>"
        for plot in section.plots
    ]
    return f'<div class="plots">{"".join(figures)}</div>' if figures else "<p>There is nothing to draw yet.</p>"


def one_run(run: RunLog, folder: Path) -> str:
    """Return a run's command, film and configuration, folded up."""
    command = recipe(run.config).command(
        int(run.summary.get("ranks") or 1), f"runs/{run.config.env.game}", [run.config.train.seed]
    )
    return (
        f"<details><summary>{escape(run.name)}</summary><pre>{escape(command)}</pre>{film(run, folder)}"
        f"<pre>{escape(run.config.dump())}</pre></details>"
    )


def film(run: RunLog, folder: Path) -> str:
    """Return the element that plays a run's film, which stays where it is: it would make the page large."""
    if run.film is None:
        return ""
    address = quote(os.path.relpath(run.film, folder), errors="surrogateescape")
    if run.film.suffix == ".gif":
        return f'<p><img loading="lazy" src="{address}" alt="film"></p>'
    return f'<p><video controls preload="none" src="{address}"></video></p>'
