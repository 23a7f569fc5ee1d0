"""The page of results in Markdown: one row for each group of runs, beside the papers' scores."""

from __future__ import annotations

from dba3c.config.nearest_preset import GAME_AND_SEED, recipe
from dba3c.reporting.groups import Group
from dba3c.reporting.published import PAPERS, SOURCE, Paper, human_normalised
from dba3c.reporting.tables import NOTHING, number

INTRODUCTION = """# Results

Made by `make results` from the logs in `{folder}`; `dba3c export RUN_DIR --logs {folder}` adds those of a run.
"""
EMPTY = "There are no logs in `{folder}` yet.\n"
EXPLANATION = """
Score: mean raw score of the newest evaluation, greedy episodes with frozen weights; for several seeds their mean and
range. Steps, minutes and core-hours are those of one run, from the start of the program to the last update; time
excludes the final evaluation, whose score is shown. Greedy episodes of the profile `deepmind` differ only in the
no-ops at their start, so in a game that waits for the first action, such as Breakout, many of the 50 episodes are
identical. The papers' scores are shown with their hours of training; they were not measured in the same way (see
below). Scores of the profiles `paper` and `deepmind` are not comparable either.
"""
HEAD = [
    "row", "game", "preset", "seeds", "score (episodes)", "human-normalised", "steps", "minutes", "cores", "core-hours",
    *(f"{paper.name}, {paper.hardware}" for paper in PAPERS),
]  # fmt: skip


def page(groups: list[Group], folder: str, picture: str | None) -> str:
    """Return the page about the logs in `folder`, with the learning curves from the file `picture`."""
    start = INTRODUCTION.format(folder=folder)
    if not groups:
        return f"{start}\n{EMPTY.format(folder=folder)}"
    curves = f"\n![learning curves]({picture})\n" if picture else ""
    commands = "\n".join(f"{place}. `{command(group)}`" for place, group in enumerate(groups, 1))
    sources = "\n".join(f"- {paper.name}: {paper.caveat}." for paper in PAPERS)
    return (
        f"{start}\n{table(groups)}\n{EXPLANATION}{curves}\n## The commands\n\n{commands}\n\n"
        f"## The papers\n\n{sources}\n- Human-normalised: 0 % is random play, 100 % a human tester. {SOURCE}.\n"
    )


def table(groups: list[Group]) -> str:
    rows = [row(place, group) for place, group in enumerate(groups, 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (HEAD, ["---"] * len(HEAD), *rows))


def row(place: int, group: Group) -> list[str]:
    """Return the cells of one group, in the order of HEAD."""
    nearest = recipe(group.config)
    changed = " (changed)" if set(nearest.overrides) - {*GAME_AND_SEED} else ""
    score = mean([run.evaluated.score for run in group.runs if run.evaluated is not None])
    cut = any(run.evaluated is not None and run.evaluated.cut for run in group.runs)
    share = None if score is None or cut else human_normalised(group.game, score)
    cores = {run.summary["cores"] for run in group.runs if run.summary.get("cores") is not None}
    return [
        f"{place}.",
        group.game.replace("_", " "),
        f"`{nearest.preset}`{changed}",
        ", ".join(map(str, sorted(group.seeds))),
        scores(group),
        number(share, "z.0%"),
        number(mean([run.counted("steps") for run in group.runs]), ",.0f"),
        number(mean([run.counted("seconds") / 60 for run in group.runs]), ",.0f"),
        ", ".join(map(str, sorted(cores))) or NOTHING,
        number(mean([run.core_hours for run in group.runs if run.core_hours is not None]), ",.2f"),
        *(published(paper, group.game) for paper in PAPERS),
    ]


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def scores(group: Group) -> str:
    """Format the mean score, the range of the seeds, and how many episodes each evaluation has."""
    found = [run.evaluated for run in group.runs if run.evaluated is not None]
    if not found:
        return NOTHING
    each = [evaluated.score for evaluated in found]
    episodes = "/".join(map(str, sorted({evaluated.episodes for evaluated in found})))
    spread = f", {min(each):,.1f} to {max(each):,.1f}" if len(each) > 1 else ""
    return f"{number(mean(each), ',.1f')}{spread} ({episodes})"


def published(paper: Paper, game: str) -> str:
    """Format a paper's score in a game, and its hours of training."""
    if game not in paper.scores:
        return NOTHING
    score, hours = paper.scores[game]
    return f"{score:,g} ({hours:g} h)"


def command(group: Group) -> str:
    """Return the command that makes the runs of a group."""
    ranks = max((run.summary.get("ranks") or 1 for run in group.runs), default=1)
    return recipe(group.config).command(ranks, f"runs/{group.game}", sorted(group.seeds))
