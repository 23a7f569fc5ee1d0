"""What is kept of the experiments, read again: curves of trainings, figures of measurements, and tables of both."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from dba3c.reporting.markdown import table

KEPT = Path(__file__).parent / "kept"
HEAD = ["setting", "seeds", "steps to 0.5", "score at the end", "updates"]


class Run(NamedTuple):
    """One training."""

    updates: int
    steps: np.ndarray
    scores: np.ndarray
    max_lag: float
    skipped: int

    def steps_to(self, score: float) -> float:
        """Say when the score was first reached; infinity if never."""
        return float(self.steps[np.argmax(self.scores >= score)]) if (self.scores >= score).any() else np.inf

    @property
    def end(self) -> float:
        """The mean score over the last fifth of the steps."""
        return float(self.scores[self.steps >= 0.8 * self.steps[-1]].mean())

    @property
    def collapsed(self) -> bool:
        """Whether 0.5 was reached, and a fifth of all points after that are below half of the best score."""
        if np.isinf(self.steps_to(0.5)):
            return False
        after = self.scores[np.argmax(self.scores >= 0.5) :]
        return bool((after < after.max() / 2).sum() >= len(self.scores) / 5)


Runs = dict[str, list[Run]]


def read(sheet: str) -> Runs:
    """Read the runs of a sheet by their settings, in the sheet's order."""
    with (KEPT / f"{sheet}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: Runs = {}
    order = [*plan(sheet)["settings"]]
    names = {(row["setting"], row["seed"]) for row in rows if row["setting"] in order}
    for setting, seed in sorted(names, key=lambda name: (order.index(name[0]), name[1])):
        own = [row for row in rows if (row["setting"], row["seed"]) == (setting, seed)]
        curve = [np.array([float(row[name]) for row in own]) for name in ("steps", "score")]
        last = own[-1]
        run = Run(int(last["updates"]), *curve, float(last["max_lag"]), int(last["skipped"] or 0))
        found.setdefault(setting, []).append(run)
    return found


def complete(name: str, sheet: str) -> bool:
    """Whether every training of a sheet, or every repetition of a measurement, has been made."""
    if not sheet:
        return all(MEASURED[name][1]().values()) and len(MEASURED[name][1]()) > 1
    planned = plan(sheet)
    runs = read(sheet) if (KEPT / f"{sheet}.csv").is_file() else {}
    return all(len(runs.get(setting, [])) == planned["seeds"] for setting in planned["settings"])


def plan(sheet: str) -> dict:
    return yaml.safe_load((KEPT.parent / f"{sheet}.yaml").read_text(encoding="utf-8"))


def measured(pattern: str) -> list[dict]:
    """Read the results of measurements that were repeated."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(KEPT.glob(pattern))]


def batches() -> dict[int, list[Run]]:
    """Return the runs with the paper's learning rate and epsilon by their effective batch."""
    first, second, third = read("d1"), read("d3"), read("d2")
    return {32: first["async1"], 512: second["batch512_1e.8"], 2048: first["sync64"], 4096: third["rate0.001"]}


def paces(strategies: tuple[str, ...]) -> dict[str, list[float]]:
    """Return what bench stragglers measured, as a share of the pace of equal ranks, by case and strategy."""
    found: dict[str, list[float]] = {}
    for row in (row for run in measured("d6-*.json") for row in run["rows"] if row["strategy"] in strategies):
        if row["case"] != "equal ranks":
            found.setdefault(f"{row['case']}: {row['strategy']}", []).append(row["of_equal_ranks"])
    return found


def hidden() -> dict[str, list[float]]:
    """Return the samples/s of each size of the hidden layer."""
    found: dict[str, list[float]] = {}
    for row in (row for run in measured("d4-*.json") for row in run["hidden"]):
        found.setdefault(f"{row['hidden']} units", []).append(row["points_per_second"])
    return found


def servers() -> dict[str, list[float]]:
    """Return the samples/s of each number of servers."""
    rows = json.loads((KEPT.parents[1] / "servers.json").read_text(encoding="utf-8"))["rows"]
    return {f"{row['servers']}": [row["samples_per_second"]] for row in rows if row["strategy"] == "server"}


def weights() -> dict[str, list[float]]:
    return {
        f"{row['hidden']} units (paper: {row['paper']:,})": [row["weights"]] for row in measured("d8.json")[0]["rows"]
    }


def gradients() -> dict[str, list[float]]:
    """Return the norms of the gradients of log π and log(π + ε), NaN where one is not finite."""
    found: dict[str, list[float]] = {}
    for row in (row for result in measured("g2.json") for row in result["rows"]):
        for label, name in (("log π", "plain"), ("log(π + ε)", "with_epsilon")):
            found[f"logits {row['gap']} apart: {label}"] = [np.nan if row[name] is None else row[name]]
    return found


def waiting() -> dict[str, list[float]]:
    """Return the simulated updates/s of 64 ranks by how many of them an update waits for."""
    found = {}
    for row in (row for result in measured("d10.json") for row in result["rows"]):
        found[f"waiting for {64 - row['n_backup']} of 64"] = row["updates_per_second"]
    return found


MEASURED: dict[str, tuple[str, Callable[[], dict[str, list[float]]]]] = {
    "D4": ("samples/s", hidden),
    "D5": ("samples/s", servers),
    "D6": ("pace, of equal ranks", lambda: paces(("allreduce", "backup 1", "backup 2"))),
    "D7": ("pace, of equal ranks", lambda: paces(("server 1",))),
    "D8": ("weights", weights),
    "D10": ("updates/s, of 64 ranks", waiting),
    "G2": ("norm of the gradient by the logits", gradients),
    "D9": (
        "steps to 0.9",
        lambda: {f"batch {n:,}": [run.steps_to(0.9) for run in runs] for n, runs in batches().items()},
    ),
}


def of(name: str, sheet: str) -> str:
    """Return the table of a claim's evidence."""
    if sheet:
        return table(HEAD, [row(setting, runs) for setting, runs in read(sheet).items()])
    unit, read_all = MEASURED[name]
    return table(
        ["", "repetitions", unit], [[label, str(len(values)), spread(values)] for label, values in read_all().items()]
    )


def spread(values: list[float]) -> str:
    """Format the mean, or the median if some are infinite, and the range."""
    if len(values) == 1:
        return shown(values[0])
    middle = float(np.median(values) if np.isinf(values).any() else np.mean(values))
    return f"{shown(middle)} ({shown(min(values))} to {shown(max(values))})"


def shown(value: float) -> str:
    if np.isnan(value):
        return "not finite"
    if np.isinf(value):
        return "never"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}" if value >= 0.01 else f"{value:.2g}"


def row(setting: str, runs: list[Run]) -> list[str]:
    needed = sorted(run.steps_to(0.5) for run in runs)
    ends = [run.end for run in runs]
    return [
        f"`{setting}`",
        str(len(runs)),
        f"{shown(float(np.median(needed)))} ({shown(needed[0])} to {shown(needed[-1])})",
        f"{np.mean(ends):.2f} ({min(ends):.2f} to {max(ends):.2f})",
        f"{runs[0].updates:,}",
    ]
