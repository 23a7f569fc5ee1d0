"""The page of a report: one HTML file with its style and its pictures inside."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

from dba3c.reporting import tables
from dba3c.reporting.figures import Section
from dba3c.reporting.groups import Group

STYLE = Path(__file__).with_name("page.css")
NUMERIC_COLUMNS = {  # of all tables; their cells are aligned right
    "seed", "steps", "minutes", "steps/s", "ranks", "cores", "core-hours", "online", "evaluation (episodes)", "best",
    "human-normalised",
}  # fmt: skip


class Picture(NamedTuple):
    """One plot as PNG files, for light and for dark pages."""

    light: bytes
    dark: bytes


def page(groups: list[Group], sections: list[Section], pictures: dict[str, Picture], now: datetime) -> str:
    """Return the page; `pictures` holds each plot's picture under the plot's name."""
    count = sum(len(group.runs) for group in groups)
    games = ", ".join(sorted({group.game.replace("_", " ") for group in groups}))
    body = [
        f"<header><h1>{escape(games)}</h1><p>{plural(count)} · {now:%Y-%m-%d %H:%M}</p></header>",
        part("Runs", "", table(tables.runs(groups))),
        part("Settings", "", table(tables.settings(groups), "words") + differences(groups)),
        *(part(section.title, section.note, plots(section, pictures)) for section in sections),
        part("Configurations", "", "".join(configuration(group) for group in groups)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>dba3c: {escape(games)}</title>\n"
        f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
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


def plots(section: Section, pictures: dict[str, Picture]) -> str:
    return f'<div class="plots">{"".join(figure(plot.title, pictures[plot.name]) for plot in section.plots)}</div>'


def figure(title: str, picture: Picture) -> str:
    light, dark = (f"data:image/png;base64,{base64.b64encode(data).decode()}" for data in picture)
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(title)}"></picture>'
    )


def configuration(group: Group) -> str:
    return f"<details><summary>{escape(group.name)}</summary><pre>{escape(group.config.dump())}</pre></details>"
