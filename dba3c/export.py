"""Export a run's agent, or its logs, as small files.

dba3c export runs/breakout                      the agent, as breakout.npz
dba3c export runs/breakout --out agent.onnx     its network, for programs without dba3c; or agent.keras
dba3c export runs/breakout --logs docs/runs     the logs, for the table of results
dba3c export breakout --starts points.json      start points for evaluations, from sampled episodes
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.config.schema import file_name
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path, new_file
from dba3c.job.process import load_tensorflow
from dba3c.run_files import logs, trained_agents, write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.logs import MOST_ROWS, RunLog, export_logs

NETWORKS = (".keras", ".onnx")  # files that programs without dba3c can load


def agent_file(text: str) -> Path:
    """Read the name of the file to write, whose ending says what is written."""
    path = checked_path(text)
    if path.suffix not in (".npz", *NETWORKS):
        raise ArgumentTypeError(f"{text!r}: its ending says what is written; use .npz, .keras or .onnx")
    return path


def parser() -> Parser:
    parser = Parser(
        prog="dba3c export",
        plugins=True,
        description="Write the agent of a run to one small file (weights in 16 bits, configuration, progress and score;"
        " no optimizer state) for dba3c evaluate FILE and record FILE: the weights with the highest score in an"
        " evaluation, or the newest ones if there was none. With --out FILE.keras or FILE.onnx, write its network for"
        " programs without dba3c. With --logs, copy its config.yaml, its summary.json and at most"
        f" {MOST_ROWS} rows of its metrics.csv instead. With --starts, write points where evaluations can start.",
    )
    also = "for a .keras or .onnx file or --starts also an agent file or the game of an agent that comes with dba3c"
    parser.add_argument("path", type=checked_path, metavar="RUN_DIR", help=f"run directory; {also}")
    parser.add_argument("--out", type=agent_file, metavar="FILE", help="default: GAME.npz; or FILE.keras, FILE.onnx")
    parser.add_argument("--newest", action="store_true", help="the newest weights, not those that have played best")
    parser.add_argument("--logs", type=checked_path, metavar="FOLDER", help="write the logs to FOLDER/NAME of RUN_DIR")
    parser.add_argument("--starts", type=new_file, metavar="FILE", help="write points of sampled episodes to FILE")
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: export(argv))


def export(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    file = options.starts or options.out
    if options.starts or (options.logs is None and file is not None and file.suffix in NETWORKS):
        write_atomically(file, content(options))
        print(f"{options.path} → {file}")
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


def content(options: Namespace) -> bytes:
    """Return the network of an agent for programs without dba3c, or points of episodes that it plays."""
    from dba3c.envs import resolve_title

    saved = trained_agents.named(str(options.path), resolve_title, "RUN_DIR", not options.newest)
    load_tensorflow(1)
    from dba3c.networks.portable import encode
    from dba3c.training import build, evaluation

    if options.starts:
        return evaluation.encoded_starts(saved.config, build.trained(saved), lambda c: build.evaluation_env(c, 1))
    return encode(build.portable(build.trained(saved), saved.config), options.out.suffix)


def with_score(saved: Checkpoint, run: RunLog) -> Checkpoint:
    """Return the checkpoint with the score of the final evaluation, if that evaluated the same weights."""
    if run.summary.get("updates") != saved.progress["updates"]:
        return saved
    # The checkpoint's own score may be older: with checkpoint.restart_games it is saved before the final evaluation.
    return saved._replace(progress=saved.progress | {"evaluation_score": run.summary.get("evaluation_score")})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
