"""Keep what the page of claims needs of the runs: a thinned curve of each, in one small table per sheet.

python docs/claims/keep.py runs/claims docs/claims/kept
"""

import csv
import sys
from pathlib import Path

import numpy as np

POINTS = 60  # kept of each run
HEAD = ("setting", "seed", "updates", "steps", "score", "max_lag", "skipped")


def number(row: dict[str, str], name: str) -> float:
    return float(row[name] or "nan")


def curve(run_dir: Path) -> list[tuple[str, ...]]:
    """Return rows of one run: online scores or, if it was evaluated on the way, the scores of its evaluations."""
    with (run_dir / "metrics.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    evaluated = [row for row in rows if row["evaluation_score"]]
    score = "evaluation_score" if evaluated else "online_score"
    rows = evaluated or [row for row in rows if row[score]]
    lag = max(number(row, "max_lag") for row in rows)
    places = np.unique(np.linspace(0, len(rows) - 1, POINTS).round().astype(int))
    kept = [rows[place] for place in places]
    return [(row["updates"], row["steps"], f"{number(row, score):.3g}", f"{lag:g}", row["skipped"]) for row in kept]


def ended(run_dir: Path) -> bool:
    file = run_dir / "exit_code"
    return file.is_file() and file.read_text(encoding="utf-8").strip() == "0"


def keep(folder: Path, file: Path) -> None:
    """Write the table of one sheet, whose runs are called catch-SETTING-SEED."""
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(HEAD)
        for run_dir in sorted(path for path in folder.glob("catch-*") if ended(path)):
            _, setting, seed = run_dir.name.split("-")
            table.writerows((setting, seed, *row) for row in curve(run_dir))


if __name__ == "__main__":
    runs, kept = map(Path, sys.argv[1:])
    kept.mkdir(parents=True, exist_ok=True)
    for sheet in sorted(path for path in runs.iterdir() if path.is_dir()):
        keep(sheet, kept / f"{sheet.name}.csv")
