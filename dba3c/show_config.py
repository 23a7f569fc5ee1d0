"""Print a configuration as dba3c train would resolve it.

dba3c config --preset ppo --game pong > mine.yaml
dba3c train --config mine.yaml
"""

from __future__ import annotations

import sys

from dba3c.config import loading
from dba3c.config.loading import HYPERPARAMS
from dba3c.job import command_line
from dba3c.job.command_line import Parser, checked_path
from dba3c.training import order


def parser() -> Parser:
    presets = ", ".join(["auto", *loading.preset_names()])
    parser = Parser(
        prog="dba3c config",
        plugins=True,
        description="Print every key with the value that dba3c train would use, as yaml. dba3c train --config FILE"
        " accepts the whole, or any part of it.",
        usage="dba3c config [GAME] [--preset NAME] [--ranks N] [--config FILE] [--section.key=value ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--preset", default="auto", help=f"one of {presets} (default: auto)")
    parser.add_argument("--game", help="short for --env.game, as is the first word")
    parser.add_argument("--ranks", type=int, default=1, metavar="N", help="for how many ranks (default: 1)")
    parser.add_argument("--config", type=checked_path, default=HYPERPARAMS, help="a yaml file with some keys")
    parser.set_defaults(run_dir=None, dry_run=False, init=None)
    return parser


def main(argv: list[str]) -> int:
    if {*command_line.HELP} & set(argv):
        return command_line.show_help(parser, argv)
    return command_line.answer(lambda: show(argv))


def show(argv: list[str]) -> None:
    asked = order.request(parser(), argv)
    config, _, note = order.resolve(asked, asked.ranks or 1)
    print(f"# {note}\n{config.dump()}" if note else config.dump(), end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
