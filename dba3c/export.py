"""Export a run's agent, or its logs, as small files.

python -m dba3c.export runs/breakout                      the agent, as breakout.npz
python -m dba3c.export runs/breakout --logs docs/runs     the logs, for the table of results
python -m dba3c.export breakout --starts points.json      start points for evaluations (evaluate.starts)
"""

from __future__ import annotations

import sys
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.config.schema import file_name
from dba3c.job import command_line, cores
from dba3c.job.command_line import Parser, checked_path, new_file
from dba3c.job.process import load_tensorflow
from dba3c.run_files import logs, trained_agents, write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.logs import MOST_ROWS, RunLog, export_logs
from dba3c.training.evaluation import POINTS_OF_AN_EPISODE, start_points

EPISODES = 10  # whose points are written


def parser() -> Parser:
    parser = Parser(
        prog="dba3c export",
        plugins=True,
        description="Write the agent of a run to one small file (weights in 16 bits, configuration, progress and score;"
        " no optimizer state) for dba3c evaluate FILE and record FILE: the weights with the highest"
        " score in an evaluation, or the newest ones if there was none. With --logs,"
        f" copy its config.yaml, its summary.json and at most {MOST_ROWS} rows of its metrics.csv instead. With"
        f" --starts, write {POINTS_OF_AN_EPISODE} points of each of {EPISODES} sampled episodes, where evaluations can"
        " start.",
    )
    parser.add_argument(
        "path", type=checked_path, metavar="RUN_DIR", help="run directory; for --starts also an agent file or a game"
    )
    parser.add_argument("--out", type=checked_path, metavar="FILE", help="agent file (default: GAME.npz)")
    parser.add_argument("--newest", action="store_true", help="the newest weights, not those that have played best")
    parser.add_argument(
        "--logs",
        type=checked_path,
        metavar="FOLDER",
        help="write the logs to FOLDER/NAME, where NAME is that of RUN_DIR",
    )
    parser.add_argument("--starts", type=new_file, metavar="FILE", help="write start points of its game to FILE")
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: export(argv))


def export(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    if options.starts is not None:
        export_starts(str(options.path), options.starts)
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


def export_starts(agent: str, file: Path) -> None:
    """Let an agent play with sampled actions, and write points of its episodes to a file."""
    from dba3c.envs import resolve_title, starts  # loads gymnasium, which --help need not wait for

    saved = trained_agents.named(agent, resolve_title, "RUN_DIR")
    threads = cores.threads_for(cores.core_shares([cores.place("")])[0])
    load_tensorflow(threads)
    from dba3c.training import build

    changes = {"policy": "sampled", "games": EPISODES, "probe_games": 0, "starts": "none"}
    config = saved.config.model_copy(update={"evaluate": saved.config.evaluate.model_copy(update=changes)})
    points = start_points(config, build.trained(saved), build.evaluation_env(config, threads))
    write_atomically(file, starts.encode(config.evaluation_env, points))
    print(f"{agent} → {file}: {len(points)} start points of {EPISODES} sampled episodes of {config.env.game}")


def with_score(saved: Checkpoint, run: RunLog) -> Checkpoint:
    """Return the checkpoint with the score of the final evaluation, if that evaluated the same weights."""
    if run.summary.get("updates") != saved.progress["updates"]:
        return saved
    # The checkpoint's own score may be older: with checkpoint.restart_games it is saved before the final evaluation.
    return saved._replace(progress=saved.progress | {"evaluation_score": run.summary.get("evaluation_score")})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
