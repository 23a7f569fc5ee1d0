"""Keep what is worth keeping of a run: its agent, or its logs.

python -m dba3c.export runs/breakout                      the agent, for --pretrained breakout
python -m dba3c.export runs/breakout --logs docs/runs     small logs, for the table of results
"""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import numpy as np

from dba3c import cli, evaluate, logs, pretrained
from dba3c.checkpoint import Checkpoint, write_atomically
from dba3c.cli import Parser
from dba3c.config import ConfigError
from dba3c.logs import RunLog
from dba3c.types import Array

ROWS = 300  # of metrics.csv that are kept


def parser() -> Parser:
    parser = Parser(
        prog="dba3c export",
        description="Write the agent of a run's newest checkpoint as one small file (weights in 16 bits, configuration,"
        " progress and score; no optimizer), which evaluate and record play with --pretrained GAME; or, with --logs, a"
        f" copy of its config.yaml, summary.json and at most {ROWS} rows of metrics.csv.",
    )
    parser.add_argument("path", type=Path, metavar="RUN_DIR", help="run directory")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: GAME.npz among the agents of dba3c")
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="instead: write the logs into FOLDER/NAME of RUN_DIR"
    )
    return parser


def main(argv: list[str]) -> int:
    return cli.answer(lambda: export(argv))


def export(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    (run,) = logs.read([options.path])
    try:
        if options.logs is not None:
            target = export_logs(options.path, run, options.logs)
        else:
            target = options.out or pretrained.AGENTS / f"{run.config.env.game}.npz"
            pretrained.save(target, with_score(evaluate.find(options.path), run))
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}; choose another place") from None
    print(f"{options.path} → {target}")


def with_score(saved: Checkpoint, run: RunLog) -> Checkpoint:
    """The checkpoint with the newest evaluation's score, if that was of the same weights."""
    if run.summary.get("updates") != saved.progress["updates"]:  # the checkpoint's own may be older than its weights
        return saved
    return saved._replace(progress=saved.progress | {"evaluation_score": run.summary.get("evaluation_score")})


def export_logs(path: Path, run: RunLog, folder: Path) -> Path:
    target = folder / path.resolve().name
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / "config.yaml", run.config.dump().encode())
    if run.summary:
        write_atomically(target / "summary.json", (json.dumps(run.summary, indent=2) + "\n").encode())
    with (target / "metrics.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(run.metrics)
        writer.writerows([text(value) for value in row] for row in thinned(run))
    return target


def thinned(run: RunLog) -> list[list[float]]:
    """Evenly chosen rows; those with an evaluation are the last to be left out, and no dropped gradient is lost."""
    there = ~np.isnan(run.column("evaluation_score"))
    evaluated = spread(np.flatnonzero(there), ROWS // 2)
    kept = sorted({*evaluated, *spread(np.flatnonzero(~there), ROWS - len(evaluated))})
    columns = {name: column[kept] for name, column in run.metrics.items()}
    if "dropped" in columns:  # counted row by row
        columns["dropped"] = np.diff(np.nancumsum(run.column("dropped"))[kept], prepend=0.0)
    return [list(row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]


def spread(numbers: Array, count: int) -> list[int]:
    """At most `count` of them, evenly, with the first and the last."""
    places = np.linspace(0, len(numbers) - 1, min(count, len(numbers))).round().astype(np.int64)
    chosen: list[int] = numbers[places].tolist()
    return chosen


def text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
