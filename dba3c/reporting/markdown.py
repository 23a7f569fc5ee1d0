"""The page of results in Markdown: one row for each group of runs, beside the papers' scores."""

from __future__ import annotations

from dba3c.config.comparison import GAME_AND_SEED, recipe
from dba3c.reporting import protocols
from dba3c.reporting.groups import Group
from dba3c.reporting.published import PAPERS, SOURCE, Paper, human_normalised
from dba3c.reporting.tables import NOTHING, number
from dba3c.types import Json

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
CONTROL = """
## Control tasks

Environments of gymnasium, until the mean of 50 greedy episodes reached the score at which gymnasium calls the task
solved. Core-seconds are seconds × cores. There are no scores of humans, and none in the papers.

{table}
"""
COMPARED = """
Beside another system, in turn, each on one core (`dba3c bench control`), from the start of the program to its end, with
its evaluations. Core-seconds are those in which it computed, whatever else the machine was doing: {machine}.

{table}
"""
CONTROL_HEAD = [
    "row", "task", "preset", "seeds", "score (episodes)", "target", "steps", "seconds", "cores", "core-seconds",
]  # fmt: skip
COMPARED_HEAD = ["task", "system", "score (episodes)", "steps", "seconds", "core-seconds"]
HEAD = [
    "row", "game", "preset", "seeds", "score (episodes)", "human-normalised", "steps", "minutes", "cores", "core-hours",
    *(f"{paper.name}, {paper.hardware}" for paper in PAPERS),
]  # fmt: skip


def page(groups: list[Group], folder: str, picture: str | None, compared: Json | None = None) -> str:
    """Return the page about the logs in `folder`, with the learning curves from the file `picture`.

    `compared` is what dba3c bench control has measured.
    """
    start = INTRODUCTION.format(folder=folder)
    if not groups:
        return f"{start}\n{EMPTY.format(folder=folder)}"
    places = list(enumerate(groups, 1))
    games = [row(place, group) for place, group in places if not is_control(group)]
    tasks = [control_row(place, group) for place, group in places if is_control(group)]
    curves = f"\n![learning curves]({picture})\n" if picture else ""
    atari = [(place, group) for place, group in places if not is_control(group)]
    rules = protocols.section(atari, table(protocols.HEAD, [protocols.row(*one) for one in atari])) if atari else ""
    control = CONTROL.format(table=table(CONTROL_HEAD, tasks)) if tasks else ""
    peers = COMPARED.format(table=compared_table(compared), machine=compared["machine"]["cpu"]) if compared else ""
    commands = "\n".join(f"{place}. `{command(group)}`" for place, group in places)
    sources = "\n".join(f"- {paper.name}: {paper.caveat}." for paper in PAPERS)
    return (
        f"{start}\n{table(HEAD, games)}\n{EXPLANATION}{curves}{rules}{control}{peers}\n## The commands\n\n"
        f"{commands}\n\n## The papers\n\n{sources}\n"
        f"- Human-normalised: 0 % is random play, 100 % a human tester. {SOURCE}.\n"
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def is_control(group: Group) -> bool:
    """Say whether a group is of a task that no human and none of the papers has a score for."""
    return group.config.env.profile == "gymnasium"


def control_row(place: int, group: Group) -> list[str]:
    """Return the cells of one group, in the order of CONTROL_HEAD."""
    row_of_game = dict(zip(HEAD, row(place, group), strict=True))
    seconds = mean([run.counted("seconds") for run in group.runs])
    cells = {"task": group.game, "target": number(group.config.target_score, "g"), "seconds": number(seconds, ",.0f")}
    core_seconds = mean([3600 * run.core_hours for run in group.runs if run.core_hours is not None])
    cells |= {"core-seconds": number(core_seconds, ",.0f")}
    return [(row_of_game | cells)[name] for name in CONTROL_HEAD]


def compared_table(compared: Json) -> str:
    rows = [
        [
            found["task"],
            found["system"],
            f"{found['score']:,.1f} ({found['episodes']})",
            *(f"{found[key]:,.0f}" for key in ("steps", "seconds", "core_seconds")),
        ]
        for found in compared["rows"]
    ]
    return table(COMPARED_HEAD, rows)


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
