"""Play greedy games with a trained agent.

python -m dba3c.evaluate runs/breakout --games 50
mpirun -np 4 python -m dba3c.evaluate runs/breakout
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from dba3c import checkpoint, launch, pretrained
from dba3c.checkpoint import Checkpoint
from dba3c.cli import Parser
from dba3c.config import ConfigError
from dba3c.evaluation import Evaluation, evaluate
from dba3c.launch import World


def parser() -> Parser:
    parser = Parser(
        prog="dba3c evaluate",
        description="Play greedy games with the newest checkpoint of a run directory, with one checkpoint file, or with"
        " an agent that comes with dba3c. Under mpirun the ranks share the games.",
    )
    add_agent_options(parser, games=50)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scores there, too")
    return parser


def add_agent_options(parser: Parser, games: int) -> None:
    """Which agent, and which games."""
    parser.add_argument("path", type=Path, nargs="?", metavar="RUN_DIR", help="run directory, or a checkpoint file")
    parser.add_argument("--pretrained", metavar="GAME", help="instead: the agent of this game that comes with dba3c")
    parser.add_argument("--games", type=int, default=games, help=f"greedy games to play (default: {games})")
    parser.add_argument("--seed", type=int, help="another seed than the training's")


def load(options: Namespace) -> Checkpoint:
    """The checkpoint that was asked for; its configuration with the games and the seed that were asked for."""
    for name, value, least in (("games", options.games, 1), ("seed", options.seed, 0)):
        if value is not None and not least <= value < 2**32:
            raise ConfigError(f"--{name}={value}: must be a whole number from {least}")
    if (options.path is None) == (options.pretrained is None):
        raise ConfigError("name either a run directory or --pretrained GAME; see --help")
    saved = find(options.path) if options.path is not None else pretrained.load(options.pretrained)
    seed = saved.config.train.seed if options.seed is None else options.seed
    train = saved.config.train.model_copy(update={"seed": seed})
    games = saved.config.evaluate.model_copy(update={"games": options.games, "probe_games": 0})
    return saved._replace(config=saved.config.model_copy(update={"train": train, "evaluate": games}))


def find(path: Path) -> Checkpoint:
    """One checkpoint file, or the newest good one of a run directory."""
    try:
        if path.is_file():
            return checkpoint.load(path)
        saved = checkpoint.load_newest(path / "checkpoints", lambda text: print(f"dba3c: {text}", file=sys.stderr))
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from None
    if saved is None:
        raise ConfigError(f"{path}: holds no checkpoint; name a run directory or a file of its checkpoints/")
    return saved


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        parser().print_help()
        return launch.EXIT_OK
    return launch.job(lambda world: play_and_report(world, argv))


def play_and_report(world: World, argv: list[str]) -> int:
    options = launch.agreed(world, lambda: parser().parse_args(argv))
    saved = launch.agreed(world, lambda: load(options))
    launch.load_tensorflow(world.threads)
    result = play(world, saved)
    if world.rank == 0:
        report(saved, result.scores, options.json)
    return launch.EXIT_OK


def play(world: World, saved: Checkpoint) -> Evaluation:
    """This rank's share of the games, under a progress bar on rank 0."""
    from dba3c import build
    from dba3c.comm.mpi import MpiTransport

    config, agent = saved.config, build.trained(saved)
    make_env, transport = build.evaluation_env(config, world.threads), MpiTransport(world.comm)
    console = Console(file=launch.terminal() or sys.stderr, quiet=world.rank != 0)
    with Progress("greedy games", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("", total=len(range(world.rank, config.evaluate.games, world.size)))
        return evaluate(config, agent, make_env, transport, lambda done: bar.update(task, completed=done))


def report(saved: Checkpoint, scores: list[float], json_path: Path | None) -> None:
    facts = {
        "game": saved.config.env.game,
        "updates": saved.progress["updates"],
        "steps": saved.progress["steps"],
        "seed": saved.config.train.seed,
        "games": len(scores),
        "evaluation_score": float(np.mean(scores)),
        "spread": float(np.std(scores)),
        "scores": scores,
    }
    print("{game}: {evaluation_score:.1f} ± {spread:.1f}, mean and spread of {games} greedy games".format(**facts))
    if json_path is not None:
        checkpoint.write_atomically(json_path, (json.dumps(facts, indent=2) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
