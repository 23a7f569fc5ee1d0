"""The plots of a report, each drawn for light and for dark pages."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from dba3c.reporting import published
from dba3c.reporting.groups import Group, band, curve
from dba3c.types import PARTS, Array

WIDTH = 5.6  # inches; with HEIGHT, readable on a phone
HEIGHT = 3.6  # inches, without the legend
DPI = 160  # sharp on a phone's screen
LEGEND_ROW = 0.22  # inches that each row of the legend adds
GAP_DISTANCES = 20  # a distance between rows is a gap in the log if it is this many times the median distance
COLOURS = ("#2f7fc1", "#dd7330", "#36975a", "#b9489b", "#7f68d0", "#a98600", "#1f9e9e", "#cc4b55", "#7d7d7d", "#8d5a3b")
# In the order of PARTS; the last one is for other.
PART_COLOURS = ("#2f7fc1", "#36975a", "#7f68d0", "#dd7330", "#cc4b55", "#a98600", "#9a9a9a")
LIGHT = {"paper": "#ffffff", "ink": "#1d232b", "lines": "#d5dae1"}
DARK = {"paper": "#171c23", "ink": "#dfe5ec", "lines": "#38414d"}
SCORES = (("online_score", "online"), ("evaluation_score", "evaluation"))
Draw = Callable[[Axes], None]
Palette = dict[str, str]  # name of a group → its colour


class Plot(NamedTuple):
    """What a picture shows, and how to draw it."""

    name: str  # of its file, without .png
    title: str
    draw: Draw
    legend_rows: int


class Section(NamedTuple):
    """Plots that belong together, and a note that explains them."""

    title: str
    note: str
    plots: list[Plot]


def render(plot: Plot) -> tuple[bytes, bytes]:
    """Draw a plot as PNG files for light and for dark pages."""
    light, dark = (png(plot, theme) for theme in (LIGHT, DARK))
    return light, dark


def png(plot: Plot, theme: dict[str, str]) -> bytes:
    """Draw a plot in the colours of a theme."""
    with mpl.rc_context(style(theme)):
        figure = Figure(figsize=(WIDTH, HEIGHT + LEGEND_ROW * plot.legend_rows), layout="constrained")
        axes = figure.add_subplot()
        plot.draw(axes)
        axes.set_title(plot.title, loc="left")
        if plot.legend_rows:
            handles, labels = axes.get_legend_handles_labels()
            columns = max(1, -(-len(labels) // plot.legend_rows))
            figure.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=DPI, format="png")
    return buffer.getvalue()


def style(theme: dict[str, str]) -> Any:  # a dict whose keys Matplotlib declares one by one
    """Return Matplotlib's settings for a theme."""
    ink = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), theme["ink"])
    paper = dict.fromkeys(("figure.facecolor", "axes.facecolor"), theme["paper"])
    frame = {"axes.edgecolor": theme["lines"], "grid.color": theme["lines"], "axes.grid": True, "axes.axisbelow": True}
    spines = {"axes.spines.top": False, "axes.spines.right": False}
    words = {"text.parse_math": False}  # a run's name may hold a $
    sizes = {"axes.titlesize": 11, "axes.titleweight": "bold", "lines.linewidth": 1.8}
    return ink | paper | frame | spines | words | sizes


class Curves(NamedTuple):
    """Which values a plot shows, and how."""

    title: str
    x: str  # steps or minutes
    y: str  # a column of metrics.csv
    human: bool = False  # in human-normalised units
    target: bool = False  # with a line at the score that ends the training
    total: bool = False  # cumulative from the start

    def of(self, group: Group) -> list[tuple[Array, Array]]:
        """Return one curve for each run that has any values."""
        found = [curve(run, self.x, self.y) for run in group.runs]
        random, human = published.RANDOM_HUMAN[group.game] if self.human else (0.0, 1.0)
        return [(x, ((np.cumsum(y) if self.total else y) - random) / (human - random)) for x, y in found if len(x)]

    def marks(self, groups: list[Group]) -> set[float]:
        """Return the scores that a dotted line marks: the targets, or the human tester's."""
        if self.target:
            return {group.config.target_score for group in groups if group.config.target_score is not None}
        return {1.0} if self.human else set()


def sections(groups: list[Group], across: str = "steps") -> list[Section]:
    """Return all plots, those that show several games `across` steps or minutes; each group keeps its colour."""
    palette = {group.name: colour for group, colour in zip(groups, itertools.cycle(COLOURS), strict=False)}
    games = sorted({group.game for group in groups})
    found = [learning(game, [group for group in groups if group.game == game], palette) for game in games]
    return [*found, normalised(groups, palette, across), pace(groups, palette), losses(groups, palette)]


def has(groups: list[Group], y: str) -> list[Group]:
    """Return the groups that have values in a column."""
    return [group for group in groups if any(len(curve(run, "steps", y)[0]) for run in group.runs)]


def learning(game: str, groups: list[Group], palette: Palette) -> Section:
    plots = [
        lines(f"{game}-{word}-{x}", Curves(f"{word} score", x, y, target=word == "evaluation"), has(groups, y), palette)
        for y, word in SCORES
        for x in ("steps", "minutes")
    ]
    note = "Online: mean of the newest 100 training episodes (sampled actions). Evaluation: greedy, frozen weights."
    if not has(groups, "evaluation_score"):
        note += " There has been no evaluation yet."
    return Section(f"Learning {game.replace('_', ' ')}", note, drawable(plots))


def normalised(groups: list[Group], palette: Palette, across: str) -> Section:
    known = [group for group in groups if group.game in published.RANDOM_HUMAN]
    unknown = sorted({group.game for group in groups} - {group.game for group in known})
    plots = [
        lines(f"human-{word}", Curves(f"human-normalised {word} score", across, y, human=True), has(known, y), palette)
        for y, word in SCORES
    ]
    note = f"0 % is random play, 100 % a professional human tester. Source: {published.SOURCE}."
    if unknown:
        note += f" Games without these scores: {', '.join(unknown)}."
    return Section("Human-normalised score", note, drawable(plots))


def pace(groups: list[Group], palette: Palette) -> Section:
    measured = has(groups, "steps_per_second")
    shares = Plot("shares", "share of the ranks' time", partial(draw_shares, measured), 2) if measured else None
    steps = lines("pace", Curves("steps/s of all ranks", "minutes", "steps_per_second"), measured, palette)
    note = "wait: for other ranks; play: for an asynchronous actor; other: evaluation, saving and unmeasured time."
    return Section("Pace", note, drawable([steps, shares]))


def losses(groups: list[Group], palette: Palette) -> Section:
    """Plot lag, dropped gradients and skipped updates; the note lists those that did not occur."""
    kinds = (("lag", "lag, in updates,"), ("dropped", "dropped gradients"), ("skipped", "skipped updates"))
    some = {y: [g for g in has(groups, y) if any(curve(run, "steps", y)[1].any() for run in g.runs)] for y, _ in kinds}
    # metrics.csv counts dropped gradients row by row, skipped updates from the start.
    plots = [lines(y, Curves(title, "steps", y, total=y == "dropped"), some[y], palette) for y, title in kinds]
    none = [title.partition(",")[0] for y, title in kinds if not some[y]]
    note = "Lag: updates between acting and the gradient; PPO's passes over the same steps count."
    return Section("Lag and lost work", note + (f" None here: {', '.join(none)}." if none else ""), drawable(plots))


def drawable(plots: list[Plot | None]) -> list[Plot]:
    return [plot for plot in plots if plot is not None]


def lines(name: str, curves: Curves, groups: list[Group], palette: Palette) -> Plot | None:
    """Plot each group's mean curve and range, and its runs as thin lines; None without groups."""

    def draw(axes: Axes) -> None:
        for group in groups:
            draw_group(axes, group.name, curves.of(group), palette[group.name], curves.y == "evaluation_score")
        label_axes(axes, curves)
        for mark in curves.marks(groups):
            if mark <= 2 * axes.get_ylim()[1]:  # a line far above the curves would flatten them
                axes.axhline(mark, color=mpl.rcParams["text.color"], linewidth=0.9, linestyle=":")

    longest = max((len(group.name) for group in groups), default=0)
    rows = len(groups) if longest > 28 else -(-len(groups) // 2)
    return Plot(name, f"{curves.title} against {curves.x}", draw, rows) if groups else None


def draw_group(axes: Axes, name: str, curves: list[tuple[Array, Array]], colour: str, marked: bool) -> None:
    shared = band(curves) if len(curves) > 1 else None
    if shared is None:
        for number, (x, y) in enumerate(curves):
            label, marker = None if number else name, "o" if marked else None
            axes.plot(*unbridged(x, y), color=colour, label=label, marker=marker, markersize=4)
        return
    for x, y in curves:
        axes.plot(*unbridged(x, y), color=colour, alpha=0.55, linewidth=0.8)
    axes.fill_between(shared.x, shared.low, shared.high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(shared.x, shared.mean, color=colour, label=name)


def unbridged(x: Array, y: Array) -> tuple[Array, Array]:
    """Break the curve where nothing was logged for long, as a line across would suggest measured values."""
    apart = np.diff(x)
    gaps = np.flatnonzero(apart > GAP_DISTANCES * np.median(apart)) + 1 if len(x) > 2 else np.zeros(0, np.int64)
    return np.insert(x, gaps, np.nan), np.insert(y, gaps, np.nan)


def label_axes(axes: Axes, curves: Curves) -> None:
    axes.set_xlabel(curves.x)
    axes.set_xlim(0, max(axes.dataLim.x1, 1e-9) * 1.03)
    if curves.x == "steps":
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if curves.human:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif max(map(abs, axes.get_ylim())) >= 10_000:
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))


def draw_shares(groups: list[Group], axes: Axes) -> None:
    """Draw one bar for each group: how its ranks spent their time."""
    places = np.arange(len(groups))[::-1]
    table = np.array([time_shares(group) for group in groups])  # [groups, parts]
    left = np.zeros(len(groups))
    for part, colour, widths in zip((*PARTS, "other"), PART_COLOURS, table.T, strict=True):
        if widths.max() >= 0.005:
            axes.barh(places, widths, 0.6, left=left, color=colour, label=part)
        left = left + widths
    names = [group.name if len(group.name) <= 18 else group.name[:17] + "…" for group in groups]
    axes.set_yticks(places, names)
    axes.set_ylim(-0.6, len(groups) - 0.4)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(visible=False, axis="y")


def time_shares(group: Group) -> Array:
    """Return the shares of PARTS and of the rest over all runs, weighting each row by the time it covers."""
    lasted = np.concatenate([np.diff(run.column("seconds"), prepend=0.0) for run in group.runs])
    shares = [np.concatenate([run.column(f"{part}_share") for run in group.runs]) for part in PARTS]
    known = np.nan_to_num(np.array(shares)) @ np.nan_to_num(lasted) / max(np.nansum(lasted), 1e-9)
    return np.append(known, max(0.0, 1.0 - known.sum()))
