"""Train an agent, alone or on any number of ranks.

dba3c train pong --ranks 2
srun --mpi=pmix -N 64 python -m dba3c.train --run-dir runs/paper
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext

from dba3c.api import CallableModule, Callback
from dba3c.config import consistency, loading, plugins
from dba3c.job import launch
from dba3c.job.command_line import HELP, Parser, checked_path, refused_or, show_any_text, show_help
from dba3c.job.exit import EXIT_OK, agreed
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.run_files.directory import prepare_directory
from dba3c.training import injected, order
from dba3c.training.injected import Faults
from dba3c.training.ranks import report_to, watch_start


def parser() -> Parser:
    parser = Parser(
        prog="dba3c train",
        plugins=True,
        description="Train an Atari agent with synchronous distributed BA3C, on one rank, on several of this machine"
        " (--ranks), or under mpirun or srun. A run directory that holds checkpoints is resumed.",
        epilog="Every key of hyperparams.yaml is an option, --section.key=value:\n\n"
        + loading.HYPERPARAMS.read_text(encoding="utf-8")
        + plugins.described(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="dba3c train [GAME] [--ranks N] [--preset NAME] [--run-dir DIR] [--config FILE] [--section.key=value …]",
        allow_abbrev=False,
    )
    names = ", ".join(["auto", *loading.preset_names()])
    parser.add_argument("--preset", default="auto", help=f"one of {names}; auto chooses by game and ranks (default)")
    parser.add_argument("--game", help="short for --env.game, as is the first word; dba3c games lists them")
    parser.add_argument("--ranks", type=int, metavar="N", help="start N ranks on this machine")
    parser.add_argument("--run-dir", type=checked_path, help="where checkpoints and metrics go (default: runs/GAME)")
    parser.add_argument("--config", type=checked_path, default=loading.HYPERPARAMS, help="yaml that wins over presets")
    parser.add_argument("--init", metavar="AGENT", help="start from the weights of a run, a file or a game's agent")
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained, and end")
    return parser


def parse(argv: list[str], ranks: int = 1) -> order.Order:
    """Resolve the command line for this many ranks; ConfigError if something is wrong with it."""
    return order.resolve(order.request(parser(), argv), ranks)


def main(argv: list[str]) -> int:
    show_any_text()
    if {*HELP} & set(argv):
        return show_help(parser, argv)
    if not launch.is_rank() and any(word.startswith(("--ranks", "--dry-run")) for word in argv):
        return refused_or(lambda: start_ranks(argv))
    return run_job(lambda world: train(world, argv), watched=True)


def start_ranks(argv: list[str]) -> int:
    """Start this command again on ranks of this machine, or say what it would do; refusals come first."""
    asked = order.request(parser(), argv)
    ranks = asked.ranks or 1
    planned = order.resolve(asked, ranks, order.saved_config(asked.run_dir))
    consistency.check_ranks(planned.config, ranks)
    if asked.dry_run:
        return order.show(planned, ranks)
    if ranks > 1:
        return launch.launch(ranks, "dba3c.train", argv)
    return run_job(lambda world: train(world, argv), watched=True)


def train(world: World, argv: list[str], callback: Callback | None = None) -> int:
    watchdog = watch_start(world)
    asked, planned = order.agree(world, parser, argv)
    faults = Faults(agreed(world, lambda: injected.planned(os.environ.get(injected.VARIABLE, ""))), world.rank)
    if asked.dry_run:
        watchdog.close()
        return order.show(planned, world.size) if world.rank == 0 else EXIT_OK
    order.say_chosen(planned.note, world.rank)
    first = world.comm.bcast(agreed(world, lambda: order.first_agent(asked) if world.rank == 0 else None))
    claim = agreed(world, lambda: prepare_directory(planned.run_dir) if world.rank == 0 else None)
    report_to(planned.run_dir)
    load_tensorflow(order.tensorflow_threads(planned.config, world.threads), world.phase)
    from dba3c.training.run import Run  # imports TensorFlow

    with claim or nullcontext():
        return Run(world, planned.config, planned.run_dir, faults, watchdog, claim, first, callback).train()


sys.modules[__name__].__class__ = CallableModule  # dba3c.train(…) is the Python API
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
