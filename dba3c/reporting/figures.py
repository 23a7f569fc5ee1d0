"""The plots of a report: which there are, and what each shows."""

from __future__ import annotations

import itertools
import re
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from dba3c.reporting import published
from dba3c.reporting.drawing import INK, Plot, draw_curves, draw_dots, explain_range, label_axes, smoothed
from dba3c.reporting.groups import Group, curve, pace_curve, resumes
from dba3c.run_files.table import COLUMNS, GROUPS
from dba3c.run_files.window import CREW
from dba3c.timings import PARTS
from dba3c.types import Array

COLOURS = ("#2f7fc1", "#dd7330", "#36975a", "#b9489b", "#7f68d0", "#a98600", "#1f9e9e", "#cc4b55", "#7d7d7d", "#8d5a3b")
# In the order of PARTS; the last one is for other.
PART_COLOURS = ("#2f7fc1", "#36975a", "#7f68d0", "#1f9e9e", "#dd7330", "#cc4b55", "#a98600", "#9a9a9a")
ACROSS = ("steps", "minutes")
MOST_LOSSES = 16  # figures of losses that get a plot
HOW_SCORES_ARE_DRAWN = (
    "Lines: online, the mean raw score of the newest 100 training episodes (sampled actions). Dots: evaluation, the"
    " mean of greedy episodes with frozen weights; only it can reach the target, which ends a training. Several seeds:"
    " their mean and range."
)
Palette = dict[str, str]  # name of a group → its colour


class Section(NamedTuple):
    """Plots that belong together, and a note that explains them."""

    title: str
    note: str
    plots: list[Plot]


def overview(groups: list[Group]) -> list[Section]:
    """Return what to look at first: scores; each group keeps its colour."""
    palette = colours(groups)
    games = sorted({group.game for group in groups})
    learned = [learning(game, [group for group in groups if group.game == game], palette) for game in games]
    together, note = normalised(groups, palette) if len(games) > 1 else ([], "")
    return [Section("Scores", HOW_SCORES_ARE_DRAWN + note, together + [plot for plots in learned for plot in plots])]


def details(groups: list[Group]) -> list[Section]:
    """Return what explains the scores: losses, pace, lag and lost work."""
    palette = colours(groups)
    return [losses(groups, palette), pace(groups, palette), *tuned(groups), lost_work(groups, palette)]


def colours(groups: list[Group]) -> Palette:
    return {group.name: colour for group, colour in zip(groups, itertools.cycle(COLOURS), strict=False)}


def has(groups: list[Group], y: str) -> list[Group]:
    """Return the groups that have values in a column."""
    return [group for group in groups if any(len(curve(run, "steps", y)[0]) for run in group.runs)]


def learning(game: str, groups: list[Group], palette: Palette) -> list[Plot]:
    """Plot the scores of one game across steps and across minutes; nothing without scores."""
    groups = [g for g in groups if g in has(groups, "online_score") or g in has(groups, "evaluation_score")]
    title = game.replace("_", " ")
    return [
        Plot(f"{game}-{x}", f"{title}: score", partial(draw_scores, groups, palette, x), x) for x in ACROSS if groups
    ]


def draw_scores(groups: list[Group], palette: Palette, across: str, axes: Axes) -> None:
    """Draw online scores as lines, evaluations as dots, and what they can be measured by."""
    ranges = dots = False
    for group in groups:
        online = [curve(run, across, "online_score") for run in group.runs]
        known = [one for one in online if len(one[0])]
        ranges |= draw_curves(axes, group.name, known, palette[group.name])
        for run in group.runs:
            x, y = curve(run, across, "evaluation_score")
            draw_dots(axes, x, y, palette[group.name])
            dots |= len(x) > 0
    label_axes(axes, across)
    if dots:
        axes.plot([], [], color=INK, marker="o", markersize=4, linestyle="", label="evaluation")
    if ranges:
        explain_range(axes)
    draw_levels(groups, axes)
    draw_resumes(groups, palette, across, axes)


def draw_levels(groups: list[Group], axes: Axes) -> None:
    """Draw lines at the target and at the score of a human tester, unless they are so far up that curves get flat."""
    targets = {group.config.target_score for group in groups} - {None}
    levels = [(target, "target", ":") for target in sorted(target for target in targets if target is not None)]
    if groups and groups[0].game in published.RANDOM_HUMAN:
        levels.append((published.RANDOM_HUMAN[groups[0].game][1], "human tester", "-."))
    for score, label, style in levels:
        if score <= 2 * axes.get_ylim()[1]:
            axes.axhline(score, color=INK, linewidth=0.9, linestyle=style, label=f"{label}: {score:,g}")


def draw_resumes(groups: list[Group], palette: Palette, across: str, axes: Axes) -> None:
    """Mark where a run was resumed, with new episodes."""
    for group in groups:
        for x in itertools.chain.from_iterable(resumes(run, across) for run in group.runs):
            axes.axvline(x, color=palette[group.name], linewidth=0.9, linestyle=(0, (2, 2)), label="resumed")


def normalised(groups: list[Group], palette: Palette) -> tuple[list[Plot], str]:
    """Plot what games can share, scores in units of random play and a human tester; return a note about it, too."""
    known = [group for group in has(groups, "online_score") if group.game in published.RANDOM_HUMAN]
    unknown = sorted({group.game for group in groups} - set(published.RANDOM_HUMAN))
    plots = [
        Plot(
            f"human-{x}",
            "all games: human-normalised online score",
            partial(draw_normalised, known, palette, x),
            x,
        )
        for x in ACROSS
        if known
    ]
    note = f" Human-normalised: 0 % is random play, 100 % a professional human tester. Source: {published.SOURCE}."
    return plots, note + (f" Games without these scores: {', '.join(unknown)}." if unknown else "")


def draw_normalised(groups: list[Group], palette: Palette, across: str, axes: Axes) -> None:
    ranges = False
    for group in groups:
        random, human = published.RANDOM_HUMAN[group.game]
        online = [curve(run, across, "online_score") for run in group.runs]
        scaled = [(x, (y - random) / (human - random)) for x, y in online if len(x)]
        ranges |= draw_curves(axes, group.name, scaled, palette[group.name])
    label_axes(axes, across, percent=True)
    if ranges:
        explain_range(axes)
    if axes.get_ylim()[1] >= 0.5:
        axes.axhline(1.0, color=INK, linewidth=0.9, linestyle="-.", label="human tester")


def losses(groups: list[Group], palette: Palette) -> Section:
    """Plot every figure that the losses give, those of own algorithms too."""
    columns = dict.fromkeys(name for group in groups for run in group.runs for name in run.metrics)
    own = [name for name in columns if name not in COLUMNS and re.fullmatch(r"[a-z]\w{0,40}", name, re.ASCII)]
    names = [name for name in (*GROUPS["loss"], *own) if has(groups, name)][:MOST_LOSSES]
    plots = [line_plot(f"loss-{name}", name.replace("_", " "), "steps", name, groups, palette) for name in names]
    note = "Means over the samples of a row, as the algorithm's loss gives them; entropy in nats."
    return Section("Losses and entropy", note, plots)


def pace(groups: list[Group], palette: Palette) -> Section:
    measured = has(groups, "seconds")
    plots = [
        Plot("pace", "steps/s of all ranks", partial(draw_pace, measured, palette)),
        Plot("shares", "share of the ranks' time", partial(draw_shares, measured)),
    ]
    note = (
        "Steps/s: over at least a minute, evaluation included. Shares: wait, for other ranks; play, for an asynchronous"
        " actor; other, evaluation, saving and unmeasured time."
    )
    return Section("Pace", note, plots if measured else [])


def draw_pace(groups: list[Group], palette: Palette, axes: Axes) -> None:
    for group in groups:
        draw_curves(axes, group.name, [c for c in map(pace_curve, group.runs) if len(c[0])], palette[group.name])
    label_axes(axes, "minutes")
    axes.set_ylim(bottom=0)


def tuned(groups: list[Group]) -> list[Section]:
    """Plot the walk of actor.self_tuning, if any run has made one."""
    walked = [group for group in groups if group.config.actor.self_tuning and group in has([group], CREW[0])]
    if not walked:
        return []
    note = "How many agents, predictors and trainers were at work: one of them moves by one at a time (self_tuning)."
    return [Section("Self-tuning", note, [Plot("self-tuning", "threads at work", partial(draw_walks, walked))])]


def draw_walks(groups: list[Group], axes: Axes) -> None:
    for group, line_style in zip(groups, itertools.cycle(("-", "--", ":", "-.")), strict=False):
        for name, colour in zip(CREW, COLOURS, strict=False):
            label = name if len(groups) == 1 else f"{group.name}: {name}"
            for run in group.runs:
                axes.step(*curve(run, "minutes", name), where="post", color=colour, linestyle=line_style, label=label)
    label_axes(axes, "minutes")
    axes.set_ylim(bottom=0)


def lost_work(groups: list[Group], palette: Palette) -> Section:
    """Plot lag, dropped gradients and skipped updates; the note lists those that did not occur."""
    kinds = (("lag", "lag, in updates"), ("dropped", "dropped gradients"), ("skipped", "skipped updates"))
    some = {y: [g for g in has(groups, y) if any(curve(run, "steps", y)[1].any() for run in g.runs)] for y, _ in kinds}
    plots = [line_plot(y, title, "steps", y, some[y], palette) for y, title in kinds if some[y]]
    none = [title.partition(",")[0] for y, title in kinds if not some[y]]
    note = "Lag: updates between acting and the gradient; PPO's passes over the same steps count."
    return Section("Lag and lost work", note + (f" None here: {', '.join(none)}." if none else ""), plots)


def line_plot(name: str, title: str, across: str, y: str, groups: list[Group], palette: Palette) -> Plot:
    return Plot(name, title, partial(draw_lines, has(groups, y), palette, across, y))


def draw_lines(groups: list[Group], palette: Palette, across: str, y: str, axes: Axes) -> None:
    for group in groups:
        found = [line(group, number, across, y) for number in range(len(group.runs))]
        draw_curves(axes, group.name, [one for one in found if len(one[0])], palette[group.name])
    label_axes(axes, across)


def line(group: Group, number: int, across: str, y: str) -> tuple[Array, Array]:
    """Return one run's curve; metrics.csv counts dropped gradients row by row, skipped updates from the start."""
    x, values = curve(group.runs[number], across, y)
    return (x, np.cumsum(values)) if y == "dropped" else smoothed(x, values) if len(x) else (x, values)


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
