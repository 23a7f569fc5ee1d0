"""Find the layout that trains fastest on this node, at a given number of samples per update: ranks, threads, actor.

dba3c tune --game breakout
"""

from __future__ import annotations

import sys
from argparse import Namespace

from dba3c.benchmarks import launching, layouts
from dba3c.config import loading
from dba3c.envs.atari_names import resolve_game
from dba3c.job.command_line import Parser


def parser() -> Parser:
    presets = ", ".join(loading.preset_names())
    parser = Parser(
        prog="dba3c tune",
        description="Try layouts on this machine or node for a few minutes and print the command and the yaml to use."
        " Run nothing else meanwhile. All of them make updates of the same number of samples, as a larger batch learns"
        " less from each step: steps/s of different batches cannot be compared.",
    )
    parser.add_argument("--game", default="breakout", help="default: breakout")
    parser.add_argument("--preset", default="fast", help=f"one of {presets} (default: fast)")
    parser.add_argument(
        "--batch", type=int, metavar="N", help="samples per update of all ranks (default: the preset's, on every core)"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of training per layout (default: 5)")
    return parser


def main(argv: list[str]) -> int:
    return launching.answer("tune", lambda: tune(parser().parse_args(argv)))


def tune(options: Namespace) -> None:
    game = resolve_game(options.game, "--game")
    if options.batch is None:
        options.batch = layouts.usual_batch(launching.cores(), options.preset)
    best, summary = layouts.search(game, options.preset, options.seconds, options.batch)
    print(layouts.advice(best, summary, game, options.preset))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
