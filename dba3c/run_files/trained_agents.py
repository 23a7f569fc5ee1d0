"""Trained agents: of a run directory, of a checkpoint file, or shipped with the package with weights in 16 bits."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dba3c.config.messages import ConfigError
from dba3c.run_files import checkpoint, write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.untrusted import tell

AGENTS = Path(__file__).parents[1] / "agents"


def add_agent_options(parser: ArgumentParser, games: int) -> None:
    """Add the options that choose an agent and its games."""
    parser.add_argument("path", type=Path, nargs="?", metavar="RUN_DIR", help="run directory, or a checkpoint file")
    parser.add_argument("--pretrained", metavar="GAME", help="instead: the agent of this game that comes with dba3c")
    parser.add_argument("--games", type=int, default=games, help=f"greedy games to play (default: {games})")
    parser.add_argument("--seed", type=int, help="another seed than the training's")


def chosen(options: Namespace, resolve: Callable[[str, str], str]) -> Checkpoint:
    """Load the agent that the options name, with the games and the seed they ask for in its configuration.

    `resolve` turns a game as the user wrote it, and the option's name, into the game's own name.
    """
    for name, value, least in (("games", options.games, 1), ("seed", options.seed, 0)):
        if value is not None and not least <= value < 2**32:
            raise ConfigError(f"--{name}={value}: must be a whole number from {least}")
    if (options.path is None) == (options.pretrained is None):
        raise ConfigError("name either a run directory or --pretrained GAME; see --help")
    if options.path is not None:
        saved = find(options.path)
        resolve(saved.config.env.game, f"{options.path}: env.game")
    else:
        saved = shipped(resolve(options.pretrained, "--pretrained"), options.pretrained)
    seed = saved.config.train.seed if options.seed is None else options.seed
    train = saved.config.train.model_copy(update={"seed": seed})
    games = saved.config.evaluate.model_copy(update={"games": options.games, "probe_games": 0})
    return saved._replace(config=saved.config.model_copy(update={"train": train, "evaluate": games}))


def find(path: Path) -> Checkpoint:
    """Load one checkpoint file, or the newest good one of a run directory."""
    try:
        if path.is_file():
            return checkpoint.load(path)
        saved = checkpoint.load_newest(path / "checkpoints", tell)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from None
    if saved is None:
        raise ConfigError(f"{path}: holds no checkpoint; name a run directory or a file of its checkpoints/")
    return saved


def shipped_games() -> list[str]:
    """List the games that an agent is shipped for."""
    return sorted(path.stem for path in AGENTS.glob("*.npz"))


def shipped(game: str, written: str) -> Checkpoint:
    """Load the shipped agent of a game, which the user wrote as `written`; ConfigError if there is none."""
    if game not in shipped_games():
        known = ", ".join(shipped_games()) or "none"
        raise ConfigError(f"--pretrained={written}: no agent of this game comes with dba3c; known: {known}")
    try:
        saved = checkpoint.load(AGENTS / f"{game}.npz")
    except (OSError, ValueError) as error:
        raise ConfigError(f"--pretrained={written}: {error}; install dba3c again") from None
    return saved._replace(weights=saved.weights.astype(np.float32))


def save(file: Path, agent: Checkpoint) -> None:
    """Write an agent; ConfigError if its weights do not fit into 16 bits."""
    with np.errstate(over="ignore"):
        small = agent.weights.astype(np.float16)
    if not np.isfinite(small).all():
        raise ConfigError("the agent has weights beyond ±65504, which do not fit into 16 bits; train it further")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, checkpoint.encode(agent._replace(weights=small, optimizer={}, algorithm={})))
