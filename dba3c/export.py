"""Export a run's agent, or its logs, as small files.

dba3c export runs/breakout                      the agent, as breakout.npz
dba3c export runs/breakout --out agent.onnx     its network, for programs without dba3c; or agent.keras
dba3c export runs/breakout --logs docs/runs     the logs, for the table of results
"""

from __future__ import annotations

import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.config.schema import file_name
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path
from dba3c.job.process import load_tensorflow
from dba3c.run_files import logs, trained_agents, write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.logs import MOST_ROWS, RunLog, export_logs

NETWORKS = (".keras", ".onnx")  # files that programs without dba3c can load


def parser() -> Parser:
    parser = Parser(
        prog="dba3c export",
        plugins=True,
        description="Write the agent of a run to one small file (weights in 16 bits, configuration, progress and score;"
        " no optimizer state) for dba3c evaluate FILE and record FILE: the weights with the highest score in an"
        " evaluation, or the newest ones if there was none. With --out FILE.keras or FILE.onnx, write its network for"
        " programs without dba3c. With --logs, copy its config.yaml, its summary.json and at most"
        f" {MOST_ROWS} rows of its metrics.csv instead.",
    )
    parser.add_argument(
        "path",
        type=checked_path,
        metavar="RUN_DIR",
        help="run directory; or, for a .keras or .onnx"
        " file, also an agent file or the game of an agent that comes with dba3c",
    )
    parser.add_argument("--out", type=checked_path, metavar="FILE", help="default: GAME.npz; or FILE.keras, FILE.onnx")
    parser.add_argument("--newest", action="store_true", help="the newest weights, not those that have played best")
    parser.add_argument(
        "--logs",
        type=checked_path,
        metavar="FOLDER",
        help="write the logs to FOLDER/NAME, where NAME is that of RUN_DIR",
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: export(argv))


def export(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    if options.logs is None and options.out is not None and options.out.suffix in NETWORKS:
        content = network(str(options.path), options.out.suffix, best=not options.newest)
        write_atomically(options.out, content)
        print(f"{options.path} → {options.out}")
        return
    (run,) = logs.read([options.path])
    try:
        if options.logs is not None:
            target = export_logs(options.path, run, options.logs)
        else:
            target = options.out or Path(f"{file_name(run.config.env.game)}.npz")
            trained_agents.save(target, with_score(trained_agents.find(options.path, not options.newest), run))
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}; choose another one") from None
    print(f"{options.path} → {target}")


def network(agent: str, suffix: str, best: bool) -> bytes:
    """Return the network of an agent as the content of a file that programs without dba3c can load."""
    from dba3c.envs import resolve_title

    saved = trained_agents.named(agent, resolve_title, "RUN_DIR", best)
    load_tensorflow(1)
    from dba3c.networks.portable import encode
    from dba3c.training import build

    return encode(build.portable(build.trained(saved), saved.config), suffix)


def with_score(saved: Checkpoint, run: RunLog) -> Checkpoint:
    """Return the checkpoint with the score of the final evaluation, if that evaluated the same weights."""
    if run.summary.get("updates") != saved.progress["updates"]:
        return saved
    # The checkpoint's own score may be older: with checkpoint.restart_games it is saved before the final evaluation.
    return saved._replace(progress=saved.progress | {"evaluation_score": run.summary.get("evaluation_score")})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
