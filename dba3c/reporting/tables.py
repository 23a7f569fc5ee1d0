"""The tables of a report, as rows of cells."""

from __future__ import annotations

import csv
import io
import math

from dba3c.config.comparison import GAME_AND_SEED, recipe, shown
from dba3c.reporting.groups import Group, differing
from dba3c.reporting.published import human_normalised
from dba3c.run_files.logs import RunLog

Rows = list[list[str]]  # the first row is the head
NOTHING = "–"  # stands in a cell that has no value


def runs(groups: list[Group]) -> Rows:
    """Return the table of runs: how far each is, what it cost, and its scores."""
    head = [
        "run", "game", "seed", "state", "steps", "minutes", "steps/s", "ranks", "cores", "core-hours", "online",
        "evaluation (episodes)", "best", "human-normalised",
    ]  # fmt: skip
    return [head, *(run_row(run) for group in groups for run in group.runs)]


def run_row(run: RunLog) -> list[str]:
    seconds, steps = run.counted("seconds"), run.counted("steps")
    return [
        run.name,
        run.config.env.game,
        str(run.config.train.seed),
        "ended" if run.ended else "unfinished",
        f"{steps:,.0f}",
        f"{seconds / 60:,.1f}",
        f"{steps / seconds:,.0f}" if seconds else NOTHING,
        number(run.summary.get("ranks"), ".0f"),
        number(run.summary.get("cores"), ".0f"),
        number(run.core_hours, ",.2f"),
        number(run.newest("online_score"), ",.1f"),
        evaluation(run),
        number(best(run), ",.1f"),
        normalised(run),
    ]


def number(value: float | None, form: str) -> str:
    """Format a number that may be missing."""
    return NOTHING if value is None else format(value, form)


def evaluation(run: RunLog) -> str:
    """Format the score of the newest evaluation and, if known, how many episodes it is the mean of."""
    newest = run.evaluated
    if newest is None:
        return NOTHING
    cut = f", {newest.cut} cut" if newest.cut else ""
    return f"{newest.score:,.1f}" + (f" ({newest.episodes}{cut})" if newest.episodes else "")


def best(run: RunLog) -> float | None:
    """Return the best score of all evaluations; None if there has been none."""
    scores = [run.summary.get("best_score"), *run.column("evaluation_score")]
    return max((float(score) for score in scores if score is not None and not math.isnan(score)), default=None)


def normalised(run: RunLog) -> str:
    """Format the human-normalised score of the newest evaluation, or else the online score, marked as such.

    Episodes that were cut have played for less time than the human, who may need it to lose points, as in Skiing.
    """
    newest, online = run.evaluated, run.newest("online_score")
    if newest is not None and newest.cut:
        return f"{NOTHING} ({newest.cut} cut)"
    score = online if newest is None else newest.score
    share = None if score is None else human_normalised(run.config.env.game, score)
    if share is None:
        return NOTHING
    return f"{share:z.0%}" + (" (online)" if newest is None else "")


def settings(groups: list[Group]) -> Rows:
    """Return the table of the settings that matter most, one row for each group."""
    head = ["run", "nearest preset", "environment", "network", "actor", "algorithm", "optimizer", "strategy"]
    return [head, *(settings_row(group) for group in groups)]


def settings_row(group: Group) -> list[str]:
    config = group.config
    algorithm, optimizer = config.algorithm, config.optimizer
    without = f", without the {config.comm.n_backup} slowest ranks" if config.comm.strategy == "backup" else ""
    nearest = recipe(config)
    changes = len(set(nearest.overrides) - {*GAME_AND_SEED})
    return [
        group.name,
        nearest.preset + (f" with {changes} change{'s' * (changes > 1)}" if changes else ""),
        f"{config.env.profile}, {config.env.n_sim} simulators per rank",
        f"{config.model.torso}, {config.model.hidden} hidden",
        f"{config.actor.kind}, segments of {config.actor.n_steps}",
        f"{algorithm.name}, γ {algorithm.gamma}, entropy {algorithm.entropy}",
        f"{optimizer.name} {optimizer.learning_rate:g}, {optimizer.schedule}",
        config.comm.strategy + without,
    ]


def differences(groups: list[Group]) -> Rows:
    """Return the table of the keys whose values differ between groups."""
    return [["key", *(group.name for group in groups)]] + [
        [name, *map(shown, values)] for name, values in differing(groups).items()
    ]


def results(groups: list[Group]) -> Rows:
    """Return a table for programs: one row for each run, plain numbers, empty cells where there is nothing."""
    head = [
        "run", "game", "preset", "changes", "seed", "ended", "steps", "seconds", "ranks", "cores", "core_hours",
        "online_score", "evaluation_score", "evaluation_games", "best_score", "human_normalised",
    ]  # fmt: skip
    return [head, *(results_row(run) for group in groups for run in group.runs)]


def results_row(run: RunLog) -> list[str]:
    nearest = recipe(run.config)
    changes = {name: value for name, value in nearest.overrides.items() if name not in GAME_AND_SEED}
    newest = run.evaluated
    share = None if newest is None else human_normalised(run.config.env.game, newest.score)
    figures = [
        run.counted("steps"), run.counted("seconds"), run.summary.get("ranks"), run.summary.get("cores"),
        run.core_hours, run.newest("online_score"), newest and newest.score, newest and newest.episodes, best(run),
        share,
    ]  # fmt: skip
    return [
        run.name,
        run.config.env.game,
        nearest.preset,
        " ".join(f"--{name}={shown(value)}" for name, value in changes.items()),
        str(run.config.train.seed),
        str(run.ended).lower(),
        *("" if value is None else f"{value:.10g}" for value in figures),
    ]


def as_csv(rows: Rows) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
