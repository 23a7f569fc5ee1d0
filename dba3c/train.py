"""Train an agent, alone or on any number of ranks.

python -m dba3c.train --preset fast --game breakout --run-dir runs/breakout
mpirun -np 4 python -m dba3c.train --preset fast --game pong --run-dir runs/pong
srun --mpi=pmix -N 64 python -m dba3c.train --run-dir runs/paper
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

from dba3c.config import consistency, loading
from dba3c.config.loading import HYPERPARAMS
from dba3c.config.schema import Config
from dba3c.job import handshake
from dba3c.job.command_line import Parser, checked_path, show_any_text, split_overrides
from dba3c.job.exit import EXIT_OK, agreed
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.run_files.directory import prepare_directory
from dba3c.training.injected import VARIABLE, Faults, planned
from dba3c.training.ranks import watch_start


class Order(NamedTuple):
    """What the user asked for."""

    config: Config
    run_dir: Path


def parser() -> Parser:
    presets = ", ".join(loading.preset_names())
    parser = Parser(
        prog="dba3c train",
        description="Train an Atari agent with synchronous distributed BA3C. Start it under mpirun or srun for more"
        " than one rank. A run directory that holds checkpoints is resumed.",
        epilog="Every key of hyperparams.yaml is an option, --section.key=value:\n\n"
        + HYPERPARAMS.read_text(encoding="utf-8"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="dba3c train [--preset NAME] [--game NAME] [--run-dir DIR] [--config FILE] [--section.key=value ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--preset", default="paper", help=f"one of {presets} (default: paper)")
    parser.add_argument("--game", help="short for --env.game")
    parser.add_argument("--run-dir", type=checked_path, help="where checkpoints and metrics go (default: runs/GAME)")
    parser.add_argument("--config", type=checked_path, default=HYPERPARAMS, help="another hyperparams.yaml")
    return parser


def parse(argv: list[str]) -> Order:
    """Resolve the command line; ConfigError if something is wrong with it."""
    options, rest = parser().parse_known_args(argv)
    overrides = split_overrides(rest)
    if options.game is not None:
        overrides.append(f"env.game={options.game}")
    config = loading.load(options.preset, overrides, options.config)
    from dba3c.envs.atari_names import resolve_game  # loads ale-py, which --help need not wait for

    game = resolve_game(config.env.game, "env.game")
    for name in config.targets:
        resolve_game(name, "targets")
    config = config.model_copy(update={"env": config.env.model_copy(update={"game": game})})
    return Order(config, options.run_dir or Path("runs") / game)


def main(argv: list[str]) -> int:
    show_any_text()
    if {"-h", "--help"} & set(argv):
        parser().print_help()
        return EXIT_OK
    return run_job(lambda world: train(world, argv), watched=True)


def train(world: World, argv: list[str]) -> int:
    from dba3c import comm, envs  # comm starts MPI, which --help need not

    watchdog = watch_start(world)
    config, run_dir = agreed(world, lambda: parse(argv))
    agreed(world, lambda: handshake.check(world.comm, config, envs.fingerprint(config.env), world.hosts))
    agreed(world, lambda: consistency.check_ranks(config, world.size))
    agreed(world, lambda: comm.refuse_unusable(config.comm))
    plan = agreed(world, lambda: planned(os.environ.get(VARIABLE, "")))
    lock = agreed(world, lambda: prepare_directory(run_dir) if world.rank == 0 else None)
    load_tensorflow(world.threads)
    from dba3c.training.run import Run  # imports TensorFlow

    try:
        return Run(world, config, run_dir, Faults(plan, world.rank), watchdog).train()
    finally:
        if lock is not None:
            lock.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
