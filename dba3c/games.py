"""List the games: what random play and a human score, and which agents come with dba3c.

dba3c games
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from dba3c.config import auto, loading
from dba3c.job import command_line
from dba3c.job.command_line import Parser
from dba3c.reporting.published import RANDOM_HUMAN, SOURCE
from dba3c.run_files import trained_agents

NOTHING = "–"
COLUMNS = ("game", "random play", "human", "target", "shipped agent", "preset auto on few ranks")


def parser() -> Parser:
    return Parser(
        prog="dba3c games",
        description="List the games that can be trained, with scores of random play and of a human tester, the"
        f" target that ends a training, the score of an agent that comes with dba3c, and its preset. Scores: {SOURCE}.",
    )


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: show(argv))


def show(argv: list[str]) -> None:
    parser().parse_args(argv)
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for column in table.columns[1:5]:
        column.justify = "right"
    for row in rows():
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 100  # a file or another program gets whole rows
    Console(highlight=False, width=width).print(table)


def rows() -> list[list[str]]:
    """Return a row of cells for each game."""
    from dba3c.envs.atari_names import games  # loads ale-py, which --help need not wait for

    targets = loading.load().targets
    shipped = trained_agents.shipped_games()
    return [
        [
            game,
            *published(game),
            f"{targets[game]:,.0f}" if game in targets else NOTHING,
            agent_score(game) if game in shipped else NOTHING,
            auto.few_ranks(game, 1, profile).preset,
        ]
        for game, profile in (*((game, "") for game in games()), ("catch", "catch"))
    ]


def published(game: str) -> list[str]:
    """Return the scores of random play and of a human, where they are known."""
    return [f"{score:,.1f}" for score in RANDOM_HUMAN[game]] if game in RANDOM_HUMAN else [NOTHING, NOTHING]


def agent_score(game: str) -> str:
    score = trained_agents.shipped(game, game).progress.get("evaluation_score")
    return NOTHING if score is None else f"{score:,.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
