"""Write docs/claims.md and its pictures from texts.yaml, the sheets and what is kept of their runs.

python docs/claims/page.py
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import evidence
import yaml
from evidence import Runs
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter
from rules import RULES

from dba3c.reporting import drawing
from dba3c.reporting.figures import COLOURS
from dba3c.run_files import write_atomically

HERE = Path(__file__).parent
PAGE = HERE.with_suffix(".md")
LONG = 4.0  # times the shortest run: then the axis is logarithmic


class Claim(NamedTuple):
    """One claim: what the paper says, how it was tested, what came out."""

    name: str
    title: str
    place: str
    claim: str
    experiment: str
    rule: str
    remark: str
    sheet: str = ""
    plugin: str = ""
    command: str = ""

    @property
    def picture(self) -> str:
        return f"{self.sheet or self.name.lower()}.svg"

    @property
    def how(self) -> str:
        """The command that makes the evidence."""
        plugin = f" --plugin docs/claims/{self.plugin}" if self.plugin else ""
        return (
            self.command or f"dba3c sweep docs/claims/{self.sheet}.yaml --jobs 1 --out runs/claims/{self.sheet}{plugin}"
        )


def section(claim: Claim, verdict: str) -> str:
    """Return the section of one claim."""
    parts = [
        f"## {claim.name}: {claim.title}",
        f"**Claim** ({claim.place}): {claim.claim.strip()}",
        f"**Experiment**: {claim.experiment.strip()}",
        f"```\n{claim.how}\n```",
        f"**Rule**: {claim.rule.strip()}",
        evidence.of(claim.name, claim.sheet),
        f"![{claim.title}](claims/{claim.picture})",
        f"**Verdict: {verdict}.** {claim.remark.strip()}",
    ]
    return "\n\n".join(part for part in parts if part)


def draw(claim: Claim) -> None:
    """Draw the scores of a sheet's settings, each with the range of its seeds, or the repetitions of a measurement."""
    if claim.sheet:
        runs = evidence.read(claim.sheet)
        plot = drawing.Plot(claim.sheet, f"{claim.sheet.upper()}: online score", lambda axes: draw_scores(axes, runs))
    else:
        unit, values = evidence.MEASURED[claim.name]
        plot = drawing.Plot(claim.name, f"{claim.name}: {unit}", lambda axes: draw_values(axes, unit, values()))
    write_atomically(HERE / claim.picture, drawing.alone(drawing.svg(plot)))


def draw_values(axes: Axes, unit: str, values: dict[str, list[float]]) -> None:
    """Draw a row of dots for each label."""
    for place, (found, colour) in enumerate(zip(values.values(), itertools.cycle(COLOURS), strict=False)):
        axes.plot(found, [-place] * len(found), "o", color=colour)
    axes.set_yticks([-place for place in range(len(values))], [*values])
    axes.set_xlabel(unit)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def draw_scores(axes: Axes, runs: Runs) -> None:
    for (setting, seeds), colour in zip(runs.items(), itertools.cycle(COLOURS), strict=False):
        drawing.draw_curves(axes, setting, [(run.steps, run.scores) for run in seeds], colour)
    lengths = [run.steps[-1] for seeds in runs.values() for run in seeds]
    axes.set_ylabel("score")
    drawing.explain_range(axes)
    drawing.label_axes(axes, "steps")
    if max(lengths) > LONG * min(lengths):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlim(min(lengths) / 30, max(lengths))


def read() -> dict:
    """Read texts.yaml, with the claims whose experiment has been made, and those whose has not."""
    texts = yaml.safe_load((HERE / "texts.yaml").read_text(encoding="utf-8"))
    every = [Claim(name, **text) for name, text in texts["claims"].items()]
    made = [claim for claim in every if evidence.complete(claim.name, claim.sheet)]
    return texts | {"made": made, "planned": [claim for claim in every if claim not in made]}


def text() -> str:
    """Return the page."""
    texts = read()
    judged = [(claim, RULES[claim.name](evidence.read(claim.sheet) if claim.sheet else {})) for claim in texts["made"]]
    verdicts = [verdict for _, verdict in judged]
    counted = ", ".join(f"{verdicts.count(verdict)} × {verdict}" for verdict in sorted({*verdicts}))
    rows = [f"| {claim.name} | {claim.title} ({claim.place}) | {verdict} |" for claim, verdict in judged]
    head = texts["head"].format(count=len(judged), verdicts=counted, rows="\n".join(rows))
    planned = [
        f"- **{c.title} ({c.place}).** The experiment is written down but has not been made: `{c.how}`"
        for c in texts["planned"]
    ]
    left = planned + [f"- **{what}** {why}" for what, why in texts["not_tested"].items()]
    sections = [section(claim, verdict) for claim, verdict in judged]
    return "\n\n".join([head.rstrip(), *sections, "## Not tested", "\n".join(left)]) + "\n"


if __name__ == "__main__":
    write_atomically(PAGE, text().encode())
    for claim in read()["made"]:
        draw(claim)
