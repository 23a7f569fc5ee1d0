"""Keep what is worth keeping of a run: its agent, or its logs.

python -m dba3c.export runs/breakout                      the agent, for --pretrained breakout
python -m dba3c.export runs/breakout --logs docs/runs     small logs, for the table of results
"""

from __future__ import annotations

import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.job import command_line
from dba3c.job.command_line import Parser
from dba3c.run_files import logs, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.logs import ROWS, RunLog, export_logs


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
    return command_line.answer(lambda: export(argv))


def export(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    (run,) = logs.read([options.path])
    try:
        if options.logs is not None:
            target = export_logs(options.path, run, options.logs)
        else:
            target = options.out or trained_agents.AGENTS / f"{run.config.env.game}.npz"
            trained_agents.save(target, with_score(trained_agents.find(options.path), run))
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}; choose another place") from None
    print(f"{options.path} → {target}")


def with_score(saved: Checkpoint, run: RunLog) -> Checkpoint:
    """The checkpoint with the newest evaluation's score, if that was of the same weights."""
    if run.summary.get("updates") != saved.progress["updates"]:  # the checkpoint's own may be older than its weights
        return saved
    return saved._replace(progress=saved.progress | {"evaluation_score": run.summary.get("evaluation_score")})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
