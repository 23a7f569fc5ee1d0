"""Film greedy games of a trained agent.

python -m dba3c.record runs/breakout --best --games 10
python -m dba3c.record --pretrained breakout --out breakout.gif
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dba3c.actors import greedy
from dba3c.actors.greedy import Game, MakeEnv
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.job import command_line, cores
from dba3c.job.command_line import Parser
from dba3c.job.process import load_tensorflow, terminal
from dba3c.run_files import trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.types import Policy

if TYPE_CHECKING:
    from dba3c.film.panel import Shot

GIF_SECONDS = 30.0  # that a gif has unless more is asked for
Take = tuple[int, Game]  # number of a game, and how it went


def parser() -> Parser:
    parser = Parser(
        prog="dba3c record",
        description="Film greedy games at the emulator's pace, with the score and the agent's estimate of what is to"
        " come. The games are those of dba3c evaluate with as many games and the same seed, and have the same scores.",
    )
    trained_agents.add_agent_options(parser, games=1)
    parser.add_argument("--best", action="store_true", help="film only the best of the games")
    parser.add_argument("--out", type=Path, metavar="FILE", help="FILE.mp4 or FILE.gif (default: GAME.mp4)")
    parser.add_argument(
        "--start", type=float, default=0.0, metavar="SECONDS", help="leave out so much of the beginning"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"length of the film (default: all; of a gif {GIF_SECONDS:.0f}, as it grows large)",
    )
    return parser


def main(argv: list[str]) -> int:
    return command_line.answer(lambda: record(argv))


def record(argv: list[str]) -> None:
    options = parser().parse_args(argv)
    file = output(options)
    from dba3c.envs.atari_names import resolve_game  # loads ale-py, which --help need not wait for

    saved = trained_agents.chosen(options, resolve_game)
    file = file or Path(f"{saved.config.env.game}.mp4")
    threads = cores.threads_for(cores.core_shares([cores.place("")])[0])
    load_tensorflow(threads)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=terminal() or sys.stderr)) as bar:
        takes = film(saved, file, threads, options, bar)
    print(f"{file}: " + ", ".join(f"game {number + 1} with score {game.score:g}" for number, game in takes))


def output(options: Namespace) -> Path | None:
    """The file that was asked for; ConfigError if it cannot be a film, before any game is played."""
    for name, value in (("start", options.start), ("seconds", options.seconds)):
        if value is not None and not 0 <= value < float("inf"):
            raise ConfigError(f"--{name}={value}: must be a number of seconds")
    file: Path | None = options.out
    if file is not None and file.suffix not in (".mp4", ".gif"):
        raise ConfigError(f"--out={file}: films are .mp4 or .gif; name a file that ends so")
    if file is not None and not file.parent.is_dir():
        raise ConfigError(f"--out={file}: there is no folder {file.parent}; make it or choose another one")
    return file


def film(saved: Checkpoint, file: Path, threads: int, options: Namespace, bar: Progress) -> list[Take]:
    """Play the games, then film those that are wanted."""
    from dba3c.training import build

    config, agent = saved.config, build.trained(saved)
    make_env = build.evaluation_env(config, threads)
    takes = play(config, agent, make_env, bar)
    if options.best:
        takes = [max(takes, key=lambda take: take[1].score)]
    task = bar.add_task("filming", total=sum(len(game.actions) for _, game in takes))
    shots = (shot for take in takes for shot in shoot(config, agent, make_env, take, lambda: bar.advance(task)))
    write(file, shots, options)
    bar.update(task, completed=sum(len(game.actions) for _, game in takes))
    return takes


def play(config: Config, agent: Policy, make_env: MakeEnv, bar: Progress) -> list[Take]:
    """The games that evaluation plays, in the same order."""
    numbers = np.arange(config.evaluate.games)
    seeds = game_seeds(config.train.seed, EVALUATION, agent.version, numbers)
    task = bar.add_task("playing", total=len(numbers))
    games = greedy.play(agent, make_env, seeds, lambda done: bar.update(task, completed=done))
    return list(enumerate(games))


def shoot(config: Config, agent: Policy, make_env: MakeEnv, take: Take, advance: Callable[[], None]) -> Iterator[Shot]:
    """A game once more, frame by frame, beside what the agent sees and thinks."""
    from dba3c.film.emulator_frames import replay
    from dba3c.film.panel import HISTORY, Shot

    number, game = take
    seed = game_seeds(config.train.seed, EVALUATION, agent.version, np.array([number]))
    title, name = config.env.game.replace("_", " "), f"game {number + 1}"
    with closing(make_env(1)) as env:
        observations, score, values = env.reset(seed), 0.0, []
        for step, frames in enumerate(replay(config.env, int(seed[0]), game.actions)):
            values.append(float(agent.act(observations, np.zeros(1, np.float32)).values[0]))
            newest = values[-HISTORY:]
            for frame in frames:
                score += frame.reward
                yield Shot(frame.picture, title, name, score, step + 1, newest)
            observations = env.step(np.array(game.actions[step : step + 1], np.int32)).observations
            advance()
    if score != game.score:
        raise RuntimeError(f"the emulator did not repeat {name}: score {score:g} instead of {game.score:g}")


def write(file: Path, shots: Iterator[Shot], options: Namespace) -> None:
    """The part of the film that was asked for; the file is there whole or not at all."""
    from dba3c.film.encoders import write_gif, write_mp4
    from dba3c.film.panel import FRAMES_PER_SECOND

    gif = file.suffix == ".gif"
    seconds = GIF_SECONDS if options.seconds is None and gif else options.seconds
    first = round(options.start * FRAMES_PER_SECOND)
    last = None if seconds is None else first + max(1, round(seconds * FRAMES_PER_SECOND))
    part = islice(shots, first, last)
    temporary = file.with_name(f".{file.name}.part{file.suffix}")
    try:
        (write_gif if gif else write_mp4)(temporary, part)
        if not temporary.exists():
            raise ConfigError(f"--start={options.start:g}: the film is over by then; start earlier")
        temporary.replace(file)
    except OSError as error:
        raise ConfigError(f"--out={file}: cannot be written: {error}; choose another one") from None
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
