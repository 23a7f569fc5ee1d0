"""The table of results, made from the small logs that are kept with the program.

python -m dba3c.results docs/runs docs/results.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.config.nearest_preset import APART, recipe
from dba3c.job import command_line
from dba3c.job.command_line import Parser
from dba3c.reporting.groups import Group, grouped
from dba3c.reporting.published import PAPERS, SOURCE, Paper, human_normalised
from dba3c.run_files import logs, write_atomically
from dba3c.run_files.logs import RunLog

NOTHING = "–"
INTRODUCTION = """# Results

Made by `make results` from the logs in `{folder}`; `dba3c export RUN_DIR --logs {folder}` adds those of a run.
"""
EMPTY = "There are no logs in `{folder}` yet, so there is nothing to tell.\n"
EXPLANATION = """
Score: the mean of the newest evaluation, greedy games with frozen weights, raw scores; of several seeds the mean and
the range. Steps, minutes and core-hours are those of one run, from the start of the program to the last update; all
evaluations are included but the one that came after it, whose score stands here. Greedy games of the profile
`deepmind` differ only in the no-ops of their start, so in a game that waits for its player, as Breakout does, many of
the 50 are the same game. The papers' values stand with their hours of training; they were not measured the same way
(below), and scores of profiles `paper` and `deepmind` are not comparable either.
"""


def parser() -> Parser:
    parser = Parser(prog="dba3c results", description="Write the table of results from the logs of runs.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="that holds a folder of logs for each run")
    parser.add_argument("file", type=Path, metavar="FILE.md", help="to write; its picture goes beside it")
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: write(argv))


def write(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    runs = kept_runs(options.folder)
    groups = sorted(grouped(runs), key=lambda group: (group.game, group.name))
    try:
        picture = draw(groups, options.file.with_suffix(".png"))
        write_atomically(options.file, page(groups, str(options.folder), picture).encode())
    except OSError as error:
        raise ConfigError(f"{options.file}: cannot be written: {error.strerror}; choose another place") from None
    print(f"{options.file}: {len(groups)} rows from {len(runs)} runs")


def kept_runs(folder: Path) -> list[RunLog]:
    """The logs that a folder holds; ConfigError if there is no such folder, as the table would be written empty."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; name one that dba3c export --logs has written, as docs/runs")
    return logs.read(sorted(path.parent for path in folder.glob("*/config.yaml")))


def page(groups: list[Group], folder: str, picture: str | None) -> str:
    start = INTRODUCTION.format(folder=folder)
    if not groups:
        return f"{start}\n{EMPTY.format(folder=folder)}"
    drawn = f"\n![learning curves]({picture})\n" if picture else ""
    commands = "\n".join(f"{number}. `{command(group)}`" for number, group in enumerate(groups, 1))
    sources = "\n".join(f"- {paper.name}: {paper.caveat}." for paper in PAPERS)
    return (
        f"{start}\n{table(groups)}\n{EXPLANATION}{drawn}\n## The commands\n\n{commands}\n\n"
        f"## The papers\n\n{sources}\n- Human-normalised: 0 % is a random player, 100 % a human tester. {SOURCE}.\n"
    )


def table(groups: list[Group]) -> str:
    head = [
        "row", "game", "preset", "seeds", "score (games)", "human-normalised", "steps", "minutes", "cores",
        "core-hours", *(f"{paper.name}, {paper.hardware}" for paper in PAPERS),
    ]  # fmt: skip
    rows = [row(number, group) for number, group in enumerate(groups, 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def row(number: int, group: Group) -> list[str]:
    near = recipe(group.config)
    changed = " (changed)" if set(near.overrides) - {*APART} else ""
    score = mean([run.evaluated.score for run in group.runs if run.evaluated is not None])
    share = None if score is None else human_normalised(group.game, score)
    cores = {run.summary["cores"] for run in group.runs if "cores" in run.summary}
    return [
        f"{number}.",
        group.game.replace("_", " "),
        f"`{near.preset}`{changed}",
        ", ".join(map(str, sorted(group.seeds))),
        scores(group),
        NOTHING if share is None else f"{share:z.0%}",
        shown(mean([run.counted("steps") for run in group.runs])),
        shown(mean([run.counted("seconds") / 60 for run in group.runs])),
        ", ".join(map(str, sorted(cores))) or NOTHING,
        shown(mean([run.core_hours for run in group.runs if run.core_hours is not None]), 2),
        *(published(paper, group.game) for paper in PAPERS),
    ]


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def shown(value: float | None, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def scores(group: Group) -> str:
    """Mean, range of the seeds, and of how many games each."""
    found = [run.evaluated for run in group.runs if run.evaluated is not None]
    if not found:
        return NOTHING
    each = [one.score for one in found]
    games = "/".join(map(str, sorted({one.games for one in found})))
    spread = f", {min(each):,.1f} to {max(each):,.1f}" if len(each) > 1 else ""
    return f"{shown(mean(each), 1)}{spread} ({games})"


def published(paper: Paper, game: str) -> str:
    if game not in paper.scores:
        return NOTHING
    score, hours = paper.scores[game]
    return f"{score:,g} ({hours:g} h)"


def command(group: Group) -> str:
    """What makes the runs of a group."""
    ranks = max((run.summary.get("ranks", 1) for run in group.runs), default=1)
    return recipe(group.config).command(ranks, f"runs/{group.game}", sorted(group.seeds))


def draw(groups: list[Group], file: Path) -> str | None:
    """Online scores against minutes in human-normalised units, which several games can share; the picture's name."""
    if not groups:
        return None
    from dba3c.reporting import figures  # Matplotlib, which a refusal need not wait for

    plots = {plot.name: plot for section in figures.sections(groups, "minutes") for plot in section.plots}
    if "human-online" not in plots:
        return None
    write_atomically(file, figures.png(plots["human-online"], figures.LIGHT))
    return file.name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
