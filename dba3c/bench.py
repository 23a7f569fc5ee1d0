"""Measure speed on this machine, or under mpirun or srun on many: python -m dba3c.bench pipeline --preset fast."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from dba3c.benchmarks import (
    Command,
    Measurement,
    complete,
    parts,
    peers,
    pipeline,
    scaling,
    servers,
    stragglers,
    threads,
)
from dba3c.benchmarks.launching import answer, cores, open_bar, run, show
from dba3c.benchmarks.peers import control
from dba3c.benchmarks.prediction import strong, weak
from dba3c.benchmarks.threads import crew
from dba3c.job.command_line import Parser
from dba3c.job.exit import EXIT_OK, agreed
from dba3c.job.world import World, launched, run_job
from dba3c.run_files import write_atomically
from dba3c.types import Json

MEASUREMENTS: dict[str, Measurement] = {
    "parts": parts,
    "pipeline": pipeline,
    "threads": threads,
    "crew": crew,
    "peers": peers,
    "control": control,
    "stragglers": stragglers,
    "predict": weak,
    "strong": strong,
}
TOGETHER = {"scaling": scaling, "servers": servers}  # what all ranks of a job measure
COMMANDS: dict[str, Command] = {**MEASUREMENTS, **TOGETHER}
PLOTS = {"scaling": scaling.plot, "servers": servers.plot, "predict": weak.plot, "strong": strong.plot}


def parser() -> Parser:
    parser = Parser(prog="dba3c bench", description="Measure speed on this machine; run nothing else meanwhile.")
    parser.set_defaults(takes_keys=False, plot=None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        command.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
        module.options(command)
    return parser


def parse(argv: list[str]) -> Namespace:
    return complete(*parser().parse_known_args(argv))


def main(argv: list[str]) -> int:
    if launched() and TOGETHER.keys() & set(argv[:1]):
        return run_job(lambda world: measure_together(world, argv))
    return answer("bench", lambda: measure(parse(argv), argv))


def measure_together(world: World, argv: list[str]) -> int:
    """Take one rank's part in a measurement; rank 0 shows and writes the result."""
    options = agreed(world, lambda: parse(argv))
    with open_bar(quiet=world.rank != 0) as bar:
        result = TOGETHER[options.command].measure(world, options, bar)
    if world.rank == 0:
        publish(result, options)
    return EXIT_OK


def measure(options: Namespace, argv: list[str]) -> None:
    if options.command in TOGETHER:  # again, on one rank per core, or on ranks that sleep most of the time
        asleep = options.command == "servers"
        ranks = servers.RANKS if asleep else cores()
        run(ranks, "dba3c.bench", argv, show=True, oversubscribe=asleep)
        return
    with open_bar() as bar:
        result = MEASUREMENTS[options.command].measure(options, bar)
    publish(result, options)


def publish(result: Json, options: Namespace) -> None:
    """Print the table; write the JSON and the picture where they are wanted."""
    show(COMMANDS[options.command].table(result))
    if options.json:
        write_atomically(options.json, (json.dumps(result, indent=2) + "\n").encode())
    if options.plot:
        PLOTS[options.command](result, options.plot)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
