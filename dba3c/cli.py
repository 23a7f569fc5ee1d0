"""Command lines → configuration. Nothing here imports TensorFlow."""

from __future__ import annotations

import argparse
import fcntl
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

from dba3c import config as configuration
from dba3c import launch
from dba3c.config import HYPERPARAMS, ConfigError
from dba3c.sections import Config


class Order(NamedTuple):
    """What the user asked `train` for."""

    config: Config
    run_dir: Path


class Parser(argparse.ArgumentParser):
    """Complains with ConfigError, so that the whole job says it once."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def answer(work: Callable[[], None]) -> int:
    """Run a program of one process; bad input is told in one line. The exit code."""
    try:
        work()
    except ConfigError as refusal:
        print(f"dba3c: {refusal}", file=sys.stderr)
        return launch.EXIT_BAD_INPUT
    return launch.EXIT_OK


def train_parser() -> Parser:
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
    parser.add_argument("--preset", default="paper", help="fast, paac, ppo, paper or paper-pong (default: paper)")
    parser.add_argument("--game", help="short for --env.game")
    parser.add_argument("--run-dir", type=Path, help="where checkpoints and metrics go (default: runs/GAME)")
    parser.add_argument("--config", type=Path, default=HYPERPARAMS, help="another hyperparams.yaml")
    return parser


def train_order(argv: list[str]) -> Order:
    """The resolved order; ConfigError if something is wrong with it."""
    options, rest = train_parser().parse_known_args(argv)
    overrides = split_overrides(rest)
    if options.game is not None:
        overrides.append(f"env.game={options.game}")
    config = configuration.load(options.preset, overrides, options.config)
    from dba3c.envs import resolve_game  # loads ale-py, which --help need not wait for

    game = resolve_game(config.env.game, "env.game")
    for name in config.targets:
        resolve_game(name, "targets")
    config = config.model_copy(update={"env": config.env.model_copy(update={"game": game})})
    return Order(config, options.run_dir or Path("runs") / game)


def prepare_directory(path: Path) -> TextIO:
    """Make the run directory and lock it while the returned file is open; ConfigError if it cannot be used.

    The kernel lets go of the lock when its owner ends, however that happens.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--run-dir={path}: cannot be written: {error.strerror}; choose another one") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "another job"
        raise ConfigError(
            f"--run-dir={path}: {owner} is training there; wait for its end or choose another one"
        ) from None
    except OSError:
        pass  # a file system without locks
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file


def split_overrides(words: list[str]) -> list[str]:
    """`--a.b=1` and `--a.b 1` as `a.b=1`."""
    overrides: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            raise ConfigError(f"{word}: not understood; options are written --section.key=value")
        name = word.removeprefix("--")
        value = None if "=" in name else next(remaining, None)
        overrides.append(name if value is None else f"{name}={value}")
    return overrides
