"""The tables of a report, as rows of texts."""

from __future__ import annotations

import math

from dba3c.config.nearest_preset import recipe, shown
from dba3c.reporting.groups import Group, differing
from dba3c.reporting.published import human_normalised
from dba3c.run_files.logs import RunLog

Rows = list[list[str]]
NOTHING = "–"


def runs(groups: list[Group]) -> Rows:
    """How each run went; the first row is the head."""
    head = [
        "run", "game", "seed", "state", "steps", "minutes", "steps/s", "ranks", "cores", "core-hours", "online",
        "evaluation (games)", "best", "human-normalised",
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
    return NOTHING if value is None else format(value, form)


def evaluation(run: RunLog) -> str:
    newest = run.evaluated
    if newest is None:
        return NOTHING
    return f"{newest.score:,.1f}" + (f" ({newest.games})" if newest.games else "")


def best(run: RunLog) -> float | None:
    """Of all evaluations."""
    scores = [run.summary.get("best_score"), *run.column("evaluation_score")]
    return max((float(score) for score in scores if score is not None and not math.isnan(score)), default=None)


def normalised(run: RunLog) -> str:
    """Of the newest evaluation, or else of the online score, which is told."""
    newest, online = run.evaluated, run.newest("online_score")
    score = online if newest is None else newest.score
    share = None if score is None else human_normalised(run.config.env.game, score)
    if share is None:
        return NOTHING
    return f"{share:z.0%}" + (" (online)" if newest is None else "")


def settings(groups: list[Group]) -> Rows:
    """The settings that matter most, group by group."""
    head = ["run", "nearest preset", "environment", "network", "player", "algorithm", "optimizer", "updates from"]
    return [head, *(settings_row(group) for group in groups)]


def settings_row(group: Group) -> list[str]:
    config = group.config
    actor, algorithm, optimizer, comm = config.actor, config.algorithm, config.optimizer, config.comm
    near = recipe(config)
    changes = len(set(near.overrides) - {"env.game", "train.seed"})
    return [
        group.name,
        near.preset + (f" with {changes} change{'s' * (changes > 1)}" if changes else ""),
        f"{config.env.profile}, {config.env.n_sim} games per rank",
        f"{config.model.torso}, {config.model.hidden} hidden",
        f"{actor.kind}, segments of {actor.n_steps}",
        f"{algorithm.name}, γ {algorithm.gamma}, entropy {algorithm.entropy}",
        f"{optimizer.name} {optimizer.learning_rate:g}, {optimizer.schedule}",
        "all ranks" if comm.strategy == "allreduce" else f"all but the {comm.n_backup} slowest ranks",
    ]


def differences(groups: list[Group]) -> Rows:
    """Every key of the configuration that is not the same everywhere."""
    return [["key", *(group.name for group in groups)]] + [
        [name, *map(shown, values)] for name, values in differing(groups).items()
    ]
