"""Write docs/large-batch.md and its picture from logs of Breakout and Catch, and from what dba3c bench strong predicts.

python docs/large-batch/large_batch.py
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from dba3c.reporting import drawing
from dba3c.reporting.figures import COLOURS
from dba3c.reporting.groups import curve
from dba3c.reporting.markdown import table
from dba3c.run_files import logs, write_atomically
from dba3c.run_files.logs import RunLog

HERE = Path(__file__).parent
DOCS = HERE.parent
sys.path.insert(0, str(DOCS / "claims"))
import evidence  # noqa: E402 (where the logs of Catch are)

SCORES = (20, 50, 100)  # online, on Breakout
TARGET = 300  # of an evaluation
NODES = (1, 4, 16, 64, 256)
PAPER = {1: "14.2 h (batch 512)", 64: "21 (batch 2,048)"}  # figure 8, minutes to 300
WANTED = (80, 512, 2048, 8192)  # effective batches; those of breakout.yaml are multiples of five
PACE = HERE / "strong.json"  # of dba3c bench strong
UNKNOWN = (
    "None: `dba3c bench strong` has not been measured on an idle machine yet (`--json docs/large-batch/strong.json`)."
)


def breakout() -> dict[int, list[RunLog]]:
    """Return the runs on Breakout with a network and preprocessing of preset fast, by their effective batch."""
    folders = [DOCS / "runs", *([HERE / "runs"] if (HERE / "runs").is_dir() else [])]
    found: dict[int, list[RunLog]] = {}
    for run in (run for folder in folders for run in logs.read_all(folder)):
        config = run.config
        if (config.env.game, config.algorithm.name, config.model.torso) == ("breakout", "a3c", "nips"):
            batch = config.batch_size * int(run.summary.get("ranks") or 1)
            found.setdefault(min(WANTED, key=lambda wanted: abs(np.log(wanted / batch))), []).append(run)
    return found


def steps_to(run: RunLog, score: float, column: str = "online_score") -> float:
    steps, online = curve(run, "steps", column)
    return float(steps[np.argmax(online >= score)]) if (online >= score).any() else np.inf


def shown(needed: Iterable[float], unit: float = 1e6) -> str:
    """Format the middle and the range."""
    values = np.array([*needed]) / unit
    if not len(values):
        return "not measured"
    known = [
        f"{value:.2f}" if np.isfinite(value) else "never" for value in (np.median(values), min(values), max(values))
    ]
    return f"{known[0]} ({known[1]} to {known[2]})" if len(values) > 1 else known[0]


def learning(runs: dict[int, list[RunLog]]) -> str:
    """Tell the steps that Breakout takes at each effective batch."""
    rows = [
        [
            f"{batch:,}",
            str(len(runs.get(batch, []))),
            *(shown(steps_to(run, score) for run in runs.get(batch, [])) for score in SCORES),
            shown(map(to_target, runs.get(batch, []))),
        ]
        for batch in WANTED
    ]
    heads = [f"million steps to {score}" for score in SCORES]
    return table(["effective batch", "runs", *heads, f"to {TARGET}, greedy"], rows)


def to_target(run: RunLog) -> float:
    return steps_to(run, TARGET, "evaluation_score")


def catch() -> str:
    """Tell the steps and the updates that Catch takes at each effective batch."""
    rows = []
    for batch, runs in evidence.batches().items():
        needed = [run.steps_to(0.9) for run in runs]
        rows.append([f"{batch:,}", str(len(runs)), shown(needed, 1e3), f"{np.median(needed) / batch:,.0f}"])
    return table(["effective batch", "runs", "thousand steps to 0.9", "updates"], rows)


def minutes(runs: dict[int, list[RunLog]]) -> str:
    """Predict the minutes to an evaluation of 300, where both halves are known."""
    if not PACE.is_file():
        return UNKNOWN
    paces = {(row["batch"], row["nodes"]): row for row in json.loads(PACE.read_text(encoding="utf-8"))["rows"]}
    rows = []
    for nodes in NODES:
        cells = []
        for batch in WANTED:
            pace = paces.get((batch, nodes), {}).get("samples_per_second")
            needed = [*map(to_target, runs.get(batch, []))]
            cells.append(shown(needed, 60 * pace) if needed and pace else "–")
        rows.append([str(nodes), *cells, PAPER.get(nodes, "–")])
    heads = [f"batch {batch:,}" for batch in WANTED]
    return table(["nodes of 12 cores", *heads, "the paper, other environment and network"], rows)


def text() -> str:
    runs = breakout()
    words = (HERE / "page.txt").read_text(encoding="utf-8")
    return words.format(learning=learning(runs), catch=catch(), minutes=minutes(runs))


def draw(axes: Axes) -> None:
    """Draw samples to a score over the effective batch, and the line of a batch that costs nothing."""
    batches = evidence.batches()
    middle = [float(np.median([run.steps_to(0.9) for run in runs])) for runs in batches.values()]
    axes.plot([*batches], middle, color=COLOURS[0], label="Catch, to 0.9")
    for batch, runs in batches.items():
        axes.plot([batch] * len(runs), [run.steps_to(0.9) for run in runs], "o", color=COLOURS[0])
    for batch, logs_ in breakout().items():
        axes.plot(
            [batch] * len(logs_), [steps_to(run, 20) for run in logs_], "s", color=COLOURS[1], label="Breakout, to 20"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(ticks := sorted({*batches, *WANTED} - {4096}), [f"{batch:,}" for batch in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("effective batch")
    axes.set_ylabel("steps")


if __name__ == "__main__":
    write_atomically(HERE.with_suffix(".md"), text().encode())
    write_atomically(HERE / "cost.svg", drawing.alone(drawing.svg(drawing.Plot("cost", "steps to a score", draw))))
