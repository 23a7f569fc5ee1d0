"""Train many agents: games × settings × seeds from a small yaml file, some at a time.

dba3c sweep atari.yaml --jobs 2
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from dba3c.config.messages import ConfigError
from dba3c.job import command_line, cores
from dba3c.job.command_line import Parser, checked_path
from dba3c.job.exit import EXIT_OK

FILE = """the file:
  games: [pong, breakout]            # as dba3c games lists them
  seeds: 5                           # 0 to 4; or a list
  preset: auto                       # of all trainings
  ranks: 1                           # of each
  common: {train.total_steps: 2M}    # settings of all trainings, section.key: value
  settings:                          # trained for each game and seed, under these names
    plain: {}
    sticky: {env.sticky: 0.25}
    fast: {preset: fast}

The run directories are FOLDER/GAME-NAME-SEED, what each training says FOLDER/logs/GAME-NAME-SEED.log."""


def parser() -> Parser:
    parser = Parser(
        prog="dba3c sweep",
        plugins=True,
        description="Train many agents from one small file. The same command continues: finished trainings are skipped,"
        " others are resumed. Ctrl-C lets all of them save, and ends with code 75.",
        epilog=FILE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=checked_path, metavar="FILE", help="yaml with games, seeds and settings")
    parser.add_argument(
        "--out", type=checked_path, metavar="FOLDER", help="folder for the runs (default: runs/NAME, for NAME.yaml)"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="K", help="trainings at a time (default: one for every `ranks` cores)"
    )
    parser.add_argument("--nice", type=int, default=0, metavar="N", help="lower their priority by 0 to 19 (default: 0)")
    parser.add_argument("--slurm", action="store_true", help="submit a job array instead, of at most K tasks at a time")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and end")
    return parser


def main(argv: list[str]) -> int:
    return command_line.refused_or(lambda: sweep(argv))


def sweep(argv: list[str]) -> int:
    options = parser().parse_args(argv)
    if options.jobs is not None and not 1 <= options.jobs <= 1000:
        raise ConfigError(f"--jobs={options.jobs}: must be a number from 1 to 1000")
    if not 0 <= options.nice <= 19:
        raise ConfigError(f"--nice={options.nice}: must be a number from 0 to 19")
    from dba3c.sweeps import array, plan  # loads ale-py, which --help need not wait for
    from dba3c.sweeps.queue import Queue
    from dba3c.sweeps.table import SweepTable

    folder = options.out or plan.RUNS / options.file.stem
    trainings = plan.read(options.file, folder, options.plugin)
    if options.dry_run:
        for training in trainings:
            print(training.command + ("  # finished" if training.finished else ""))
        return EXIT_OK
    if options.slurm:
        print(array.submit(trainings, folder, options.jobs))
        return EXIT_OK
    share = cores.threads_for(cores.core_shares([cores.place("")])[0]) // trainings[0].ranks
    queue = Queue(trainings, options.jobs or max(1, share), options.nice, folder / "logs")
    with SweepTable(trainings, queue, Console()) as table:
        return queue.run(table.refresh)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
