"""Play episodes with a trained agent.

mpirun -np 4 python -m dba3c.evaluate runs/breakout --games 50
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from dba3c.job.command_line import HELP, Parser, new_file, show_any_text, show_help
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_OK, agreed
from dba3c.job.process import load_tensorflow, terminal
from dba3c.job.world import World, run_job
from dba3c.run_files import write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.trained_agents import add_agent_options, chosen
from dba3c.training.evaluation import Evaluation, cut_off, evaluate
from dba3c.training.ranks import parsed, watch_start, watched


def parser() -> Parser:
    about = "Play episodes with a trained agent, as its evaluations did. Under mpirun the ranks share them."
    parser = Parser(prog="dba3c evaluate", plugins=True, description=about)
    add_agent_options(parser, games=50)
    parser.add_argument("--best", action="store_true", help="the run's weights with the highest score so far")
    parser.add_argument("--starts", metavar="FILE", help="start episodes at the points in FILE (dba3c export --starts)")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="also write the scores to FILE")
    return parser


def main(argv: list[str]) -> int:
    show_any_text()
    if {*HELP} & set(argv):
        return show_help(parser, argv)
    return run_job(lambda world: play_and_report(world, argv), watched=True)


def play_and_report(world: World, argv: list[str]) -> int:
    watchdog = watch_start(world)
    from dba3c.envs import resolve_title  # loads gymnasium, which --help need not wait for

    options = parsed(world, parser, argv)
    saved = agreed(world, lambda: chosen(options, resolve_title, options.best))
    load_tensorflow(world.threads, world.phase)
    with watched(world, watchdog, saved.config.comm.silence_seconds, "evaluating"):
        result = play(world, saved)
        return report(saved, result, options.json) if world.rank == 0 else EXIT_OK


def play(world: World, saved: Checkpoint) -> Evaluation:
    """Play this rank's share of the episodes, under a progress bar on rank 0; return the scores of all ranks."""
    from dba3c.comm.mpi import MpiTransport
    from dba3c.training import build

    config, transport = saved.config, MpiTransport(world.comm)
    agent = agreed(world, lambda: build.trained(saved))
    make_env = build.evaluation_env(config, world.threads)
    console = Console(file=terminal() or sys.stderr, quiet=world.rank != 0)
    with Progress("episodes", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as bar:
        mine = bar.add_task("", total=len(range(world.rank, config.evaluate.games, world.size)))
        return evaluate(config, agent, make_env, transport, lambda done: bar.update(mine, completed=done))


def report(saved: Checkpoint, result: Evaluation, json_path: Path | None) -> int:
    """Print the mean score and its spread; write all scores to `json_path`, if there is one; return the exit code."""
    facts = {
        "game": saved.config.env.game,
        "updates": saved.progress["updates"],
        "steps": saved.progress["steps"],
        "seed": saved.config.train.seed,
        "games": len(result.scores),
        "policy": saved.config.evaluate.policy,
        "sticky": saved.config.evaluation_sticky,
        "starts": saved.config.evaluate.starts,
        "cut": result.cut,
        "evaluation_score": result.mean,
        "spread": float(np.std(result.scores)),
        "scores": result.scores,
    }
    mean = f"{facts['game']}: {result.mean:.1f} ± {facts['spread']:.1f}, mean and standard deviation of"
    print(f"{mean} {facts['games']} {saved.config.evaluation_episodes}{cut_off(result.cut)}")
    try:
        if json_path is not None:
            write_atomically(json_path, (json.dumps(facts, indent=2) + "\n").encode())
    except OSError as error:
        print(f"dba3c: --json={json_path}: cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_BAD_INPUT
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
