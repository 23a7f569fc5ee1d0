"""Film episodes of a trained agent.

python -m dba3c.record runs/breakout --best --games 10
python -m dba3c.record --pretrained breakout --out breakout.gif
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dba3c.config.messages import ConfigError
from dba3c.config.schema import file_name
from dba3c.job import command_line, cores
from dba3c.job.command_line import Parser, new_file
from dba3c.job.process import load_tensorflow, terminal
from dba3c.run_files import trained_agents
from dba3c.run_files.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dba3c.film.shots import Take

GIF_SECONDS = 30.0  # default length of a gif, which grows large


def parser() -> Parser:
    parser = Parser(
        prog="dba3c record",
        plugins=True,
        description="Film episodes at the emulator's pace, with the score and the agent's value estimate."
        " dba3c evaluate with the same options plays the same episodes, with the same scores.",
    )
    trained_agents.add_agent_options(parser, games=1)
    parser.add_argument("--best", action="store_true", help="film only the episode with the highest score")
    parser.add_argument("--out", type=new_file, metavar="FILE", help="FILE.mp4 or FILE.gif (default: GAME.mp4)")
    parser.add_argument(
        "--start", type=float, default=0.0, metavar="SECONDS", help="skip this much of the film (default: 0)"
    )
    parser.add_argument(
        "--seconds", type=float, help=f"length of the film (default: all of it; for a gif {GIF_SECONDS:.0f})"
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: record(argv))


def record(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    refuse_bad_options(options)
    from dba3c.envs import resolve_title  # loads gymnasium, which --help need not wait for

    saved = trained_agents.chosen(options, resolve_title)
    file = options.out or Path(f"{file_name(saved.config.env.game)}.mp4")
    threads = cores.threads_for(cores.core_shares([cores.place("")])[0])
    load_tensorflow(threads)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=terminal() or sys.stderr)) as bar:
        takes = film(saved, file, threads, options, bar)
    print(f"{file}: " + ", ".join(f"{take.name} with score {take.episode.score:g}" for take in takes))


def refuse_bad_options(options: Namespace) -> None:
    """Raise ConfigError for what cannot become a film, before any episode is played."""
    for name, value in (("start", options.start), ("seconds", options.seconds)):
        if value is not None and not 0 <= value < float("inf"):
            raise ConfigError(f"--{name}={value}: must be a number of seconds, at least 0")
    if options.out is not None and options.out.suffix not in (".mp4", ".gif"):
        raise ConfigError(f"--out={options.out}: films are .mp4 or .gif; choose a name with one of these endings")


def film(saved: Checkpoint, file: Path, threads: int, options: Namespace, bar: Progress) -> list[Take]:
    """Play the episodes, then film all of them or the best one; return those that were filmed."""
    from dba3c.film import shots
    from dba3c.training import build

    config, agent = saved.config, build.trained(saved)
    make_env = build.evaluation_env(config, threads)
    playing = bar.add_task("playing", total=config.evaluate.games)
    takes = shots.play(config, agent, make_env, lambda done: bar.update(playing, completed=done))
    if options.best:
        takes = [max(takes, key=lambda take: take.episode.score)]
    steps = sum(len(take.episode.actions) for take in takes)
    task = bar.add_task("filming", total=steps)
    every = (shot for take in takes for shot in shots.shoot(config, agent, make_env, take, lambda: bar.advance(task)))
    seconds = GIF_SECONDS if options.seconds is None and file.suffix == ".gif" else options.seconds
    shots.write(file, every, options.start, seconds)
    bar.update(task, completed=steps)
    return takes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
