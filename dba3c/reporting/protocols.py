"""The same agents by other rules: greedy, sampled, with sticky actions, and while they learned."""

from __future__ import annotations

from contextlib import suppress

from dba3c.reporting.groups import Group
from dba3c.reporting.published import human_normalised
from dba3c.reporting.statistics import Interval, bootstrap
from dba3c.reporting.tables import NOTHING
from dba3c.run_files.logs import EVALUATIONS, SMALL_FILE, Evaluated, RunLog, is_number
from dba3c.run_files.untrusted import MOST_NUMBER, parse_json
from dba3c.run_files.untrusted import read as read_file
from dba3c.types import Json

PROTOCOLS = ("greedy", "sampled", "sticky")
HEAD = [
    "row", "game", "ended by", "last evaluation", "interquartile mean (95 %)", "greedy", "sampled", "sticky 0.25",
    "online",
]  # fmt: skip
TEXT = """
## By other rules

{table}

Ended by: the first evaluation that reached the target, as in version 0.1, by two in a row, as new runs do, by the
number of steps, or stopped by hand before that. Last evaluation: the mean of each seed's. Interquartile mean: of the
seeds' last evaluations, with a 95 % interval by the stratified bootstrap, as rliable defines them; of two or three
seeds it is the mean, and the interval little else than their range. Greedy, sampled and sticky: the final weights,
played again by `make scores` (episodes); sampled actions are drawn as in training; sticky: greedy actions, and every
frame repeats the previous action with probability 0.25, which agents trained with `env.sticky=0` have never met.
Online: the mean of the last 100 episodes of training, whose actions are sampled and whose weights change.
{together}"""
TOGETHER = """
Interquartile mean of the human-normalised scores of {games} games × {seeds} seeds, by their last evaluation:
**{estimate:.0%}** (95 % interval {low:.0%} to {high:.0%}).
"""


def section(places: list[tuple[int, Group]], table: str) -> str:
    """Return the section about groups of Atari games, whose table is already written."""
    shares = [normalised(group) for _, group in places]
    known = [scores for scores in shares if scores]
    together = ""
    seeds = set(map(len, known))
    if len(known) > 1 and len(seeds) == 1 and seeds != {1}:  # as rliable needs it: the same number for each game
        together = TOGETHER.format(seeds=len(known[0]), games=len(known), **bootstrap(known)._asdict())
    return TEXT.format(table=table, together=together)


def row(place: int, group: Group) -> list[str]:
    """Return the cells of one group, in the order of HEAD."""
    last = [run.evaluated.score for run in group.runs if run.evaluated is not None]
    online = [score for run in group.runs if (score := run.newest("online_score")) is not None]
    played = [evaluations(run) for run in group.runs]
    return [
        f"{place}.",
        group.game.replace("_", " "),
        rule(group),
        ", ".join(f"{score:,.1f}" for score in last) or NOTHING,
        interval(bootstrap([last])) if len(last) > 1 else NOTHING,
        *(cell([found[name] for found in played if name in found]) for name in PROTOCOLS),
        ", ".join(f"{score:,.1f}" for score in online) or NOTHING,
    ]


def rule(group: Group) -> str:
    """Say what ended the runs: their steps, evaluations that reached the target, or somebody."""
    times = group.config.evaluate.in_a_row
    reached = "first evaluation" if times == 1 else f"{times} in a row"
    ways = set()
    for run in group.runs:
        if run.ended:
            over = "steps" if run.counted("steps") >= group.config.train.total_steps else "stopped"
            ways.add(reached if run.summary.get("target_reached") is True else over)
    return " or ".join(sorted(ways)) or NOTHING


def interval(found: Interval) -> str:
    return f"{found.estimate:,.1f} ({found.low:,.1f} to {found.high:,.1f})"


def cell(found: list[Evaluated]) -> str:
    """Format the scores of the seeds that were played again."""
    return ", ".join(f"{one.score:,.1f} ({one.episodes})" for one in found) or NOTHING


def normalised(group: Group) -> list[float]:
    """Return the human-normalised scores of a group's runs whose episodes all came to their end."""
    found = [run.evaluated for run in group.runs if run.evaluated is not None and not run.evaluated.cut]
    shares = [human_normalised(group.game, evaluated.score) for evaluated in found]
    return [share for share in shares if share is not None]


def evaluations(run: RunLog) -> dict[str, Evaluated]:
    """Read what dba3c evaluate --json has left in a run's folder about its final weights, by protocol."""
    found: dict[str, Evaluated] = {}
    for file in sorted(run.path.glob(EVALUATIONS)) if run.path else []:
        with suppress(OSError, ValueError):  # damaged, or of something else
            facts = parse_json(read_file(file, SMALL_FILE))
            if isinstance(facts, dict) and facts.get("updates") == run.counted("updates"):
                found |= as_protocol(facts)
    return found


def as_protocol(facts: Json) -> dict[str, Evaluated]:
    """Return an evaluation by its protocol; nothing if it is of no protocol that is compared, ValueError if damaged."""
    numbers = [facts.get(name) for name in ("evaluation_score", "games", "cut", "sticky")]
    score, games, cut, sticky = (
        float(value) for value in numbers if value is not None and is_number(value, -MOST_NUMBER)
    )
    by_rule = {("greedy", 0.0): "greedy", ("sampled", 0.0): "sampled", ("greedy", 0.25): "sticky"}
    name = by_rule.get((str(facts.get("policy")), sticky))
    return {} if name is None else {name: Evaluated(score, int(games), int(cut))}
