"""How plots are drawn: as SVG whose colours follow the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from dba3c.reporting.groups import band
from dba3c.types import Array

WIDTH = 5.6  # inches; with HEIGHT, readable on a phone
HEIGHT = 3.4  # inches, without the legend
LEGEND_ROW = 0.2  # inches that each row of the legend adds
GAP_DISTANCES = 20  # a distance between rows is a gap in the log if it is this many times the median distance
SMOOTH_POINTS = 80  # of a curve that is mostly noise
MOST_POINTS = 200  # of a curve: more could not be told apart at this width
INK, PAPER, LINES = (
    "#1d232b",
    "#fffffe",
    "#d5dae1",
)  # stand for the page's colours, which light and dark pages differ in
VARIABLES = {INK: "var(--ink)", PAPER: "var(--paper)", LINES: "var(--line)"}
ALONE = (  # the colours of a picture that is no part of a page
    "<style>:root{--ink:#1d232b;--paper:#fff;--line:#d5dae1}"
    "@media(prefers-color-scheme:dark){:root{--ink:#dfe5ec;--paper:#171c23;--line:#38414d}}</style>"
)
Draw = Callable[[Axes], None]
Curve = tuple[Array, Array]  # x, y


class Plot(NamedTuple):
    """What a picture shows, and how to draw it."""

    name: str  # of its file, without .svg
    title: str
    draw: Draw
    across: str = ""  # steps or minutes, if there is the same plot across the other; the page switches between them


def svg(plot: Plot) -> str:
    """Draw a plot, as an SVG element for a page that has the variables of VARIABLES."""
    with mpl.rc_context(style(plot.name)):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        plot.draw(axes)
        axes.set_title(plot.title, loc="left")
        add_legend(figure, axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return slim(buffer.getvalue())


def alone(picture: str) -> bytes:
    """Return a picture as a file of its own, which a Git host and any browser show."""
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + ALONE, picture, count=1).encode()


def style(name: str) -> Any:  # a dict whose keys Matplotlib declares one by one
    """Return Matplotlib's settings; the name makes the picture's identifiers its own on a page of many."""
    ink = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    paper = dict.fromkeys(("figure.facecolor", "axes.facecolor"), PAPER)
    frame = {"axes.edgecolor": LINES, "grid.color": LINES, "axes.grid": True, "axes.axisbelow": True}
    spines = {"axes.spines.top": False, "axes.spines.right": False}
    words = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": name}  # a run's name may hold a $
    sizes = {"axes.titlesize": 11, "axes.titleweight": "bold", "lines.linewidth": 1.6, "legend.fontsize": 8.5}
    return ink | paper | frame | spines | words | sizes | {"path.simplify": False}


def slim(text: str) -> str:
    """Leave out what no browser needs: the prolog, metadata, names that nothing refers to, hundredths of a point."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    numbers = re.compile(r"(\.\d)\d+")
    text = re.sub(r' (d|x|y|transform)="[^"]*"', lambda match: numbers.sub(r"\1", match[0]), text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    text = re.sub(r"font: ([^;]*?)'DejaVu Sans'[^;\"]*", r"font: \1system-ui, sans-serif", text)
    return re.sub(r"\s*\n\s*", "\n", text)


def add_legend(figure: Figure, axes: Axes) -> None:
    """Explain every kind of line below the plot, each once."""
    handles, labels = axes.get_legend_handles_labels()
    entries = {label: handle for handle, label in zip(handles, labels, strict=True) if label}
    if entries:
        columns = 1 if max(map(len, entries)) > 42 else 2 if max(map(len, entries)) > 22 else 3
        rows = -(-len(entries) // columns)
        figure.set_size_inches(WIDTH, HEIGHT + LEGEND_ROW * rows)
        names = [label if len(label) <= 64 else label[:63] + "…" for label in entries]
        figure.legend(entries.values(), names, loc="outside lower left", ncols=columns, frameon=False)


def explain_range(axes: Axes) -> None:
    """Put the range of the seeds, which has several colours, into the legend once."""
    axes.fill_between([], [], color=INK, alpha=0.2, linewidth=0, label="range of the seeds")


def draw_curves(axes: Axes, name: str, curves: Sequence[Curve], colour: str) -> bool:
    """Draw a group's mean and range, its runs as thin lines; return whether there is a range."""
    shared = band(list(curves), MOST_POINTS) if len(curves) > 1 else None
    if shared is None:
        for number, one in enumerate(curves):
            axes.plot(*unbridged(*thinned(*one)), color=colour, label=None if number else name)
        return False
    for one in curves:
        axes.plot(*unbridged(*thinned(*one)), color=colour, alpha=0.55, linewidth=0.7)
    axes.fill_between(shared.x, shared.low, shared.high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(shared.x, shared.mean, color=colour, label=name)
    return True


def draw_dots(axes: Axes, x: Array, y: Array, colour: str) -> None:
    """Draw dots as one path of round line ends, which takes a fifth of the bytes of markers."""
    gaps = np.full_like(x, np.nan)
    across, up = np.stack([x, x, gaps], 1).ravel(), np.stack([y, y, gaps], 1).ravel()
    axes.plot(across, up, color=colour, linewidth=4, solid_capstyle="round")


def thinned(x: Array, y: Array) -> Curve:
    """Keep MOST_POINTS at even distances, the first and the last among them."""
    places = np.unique(np.linspace(0, len(x) - 1, min(MOST_POINTS, len(x))).round().astype(np.int64))
    return x[places], y[places]


def smoothed(x: Array, y: Array) -> Curve:
    """Average neighbours, so that no more than SMOOTH_POINTS remain."""
    parts = np.array_split(np.arange(len(x)), min(SMOOTH_POINTS, max(1, len(x))))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


def unbridged(x: Array, y: Array) -> Curve:
    """Break the curve where nothing was logged for long, as a line across would suggest measured values."""
    apart = np.diff(x)
    gaps = np.flatnonzero(apart > GAP_DISTANCES * np.median(apart)) + 1 if len(x) > 2 else np.zeros(0, np.int64)
    return np.insert(x, gaps, np.nan), np.insert(y, gaps, np.nan)


def label_axes(axes: Axes, across: str, percent: bool = False) -> None:
    axes.set_xlabel(across)
    axes.set_xlim(0, max(axes.dataLim.x1, 1e-9) * 1.03)
    if across == "steps":
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif max(map(abs, axes.get_ylim())) >= 10_000:
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
