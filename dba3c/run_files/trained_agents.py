"""Trained agents: of a run directory, of a checkpoint file, or shipped with the package with weights in 16 bits."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dba3c.config import loading
from dba3c.config.consistency import check_sticky
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.run_files import checkpoint, write_atomically
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.untrusted import tell

AGENTS = Path(__file__).parents[1] / "agents"
SHIPPED_PROFILE = "deepmind"  # all of them play Atari games
BEST = "best.npz"  # among a run's checkpoints: the weights with the highest score in an evaluation


# Turns a profile, a game as the user wrote it, and the option's name into the game's own name.
Resolve = Callable[[str, str, str], str]


def add_agent_options(parser: ArgumentParser, games: int) -> None:
    """Add the options that choose an agent and its games."""
    parser.add_argument("path", type=Path, nargs="?", metavar="RUN_DIR", help="run directory, checkpoint or agent file")
    parser.add_argument("--pretrained", metavar="GAME", help="instead: the agent of this game that comes with dba3c")
    parser.add_argument("--games", type=int, default=games, help=f"episodes to play (default: {games})")
    parser.add_argument("--seed", type=int, help="a seed other than the training's")
    policy = parser.add_mutually_exclusive_group()
    policy.add_argument("--greedy", action="store_const", const="greedy", dest="policy", help="take the best actions")
    policy.add_argument(
        "--sampled", action="store_const", const="sampled", dest="policy", help="draw them as in training"
    )
    policy.add_argument("--epsilon", metavar="E", help="take any action with probability E, else the best")
    parser.add_argument("--sticky", metavar="P", help="each frame repeats the previous action with probability P")


def chosen(options: Namespace, resolve: Resolve, best: bool = False) -> Checkpoint:
    """Load the agent that the options name, with the games and the seed they ask for in its configuration.

    `best` asks for the weights of a run that have played best.
    """
    for name, value, least in (("games", options.games, 1), ("seed", options.seed, 0)):
        if value is not None and not least <= value < 2**32:
            raise ConfigError(f"--{name}={value}: must be a whole number from {least}")
    if (options.path is None) == (options.pretrained is None):
        raise ConfigError("name either a run directory or --pretrained GAME; see --help")
    if best and (options.path is None or not (options.path / "checkpoints" / BEST).is_file()):
        raise ConfigError(f"--best: {options.path or 'a shipped agent'} holds no checkpoints/{BEST}; leave --best out")
    if options.path is not None:
        saved = find(options.path, best)
        resolve(saved.config.env.profile, saved.config.env.game, f"{options.path}: env.game")
    else:
        saved = shipped(resolve(SHIPPED_PROFILE, options.pretrained, "--pretrained"), options.pretrained)
    seed = saved.config.train.seed if options.seed is None else options.seed
    train = saved.config.train.model_copy(update={"seed": seed})
    games = saved.config.evaluate.model_copy(update={"games": options.games, "probe_games": 0})
    config = saved.config.model_copy(update={"train": train, "evaluate": games})
    return saved._replace(config=played_as(config, options))


def played_as(config: Config, options: Namespace) -> Config:
    """Return the configuration with the policy and the sticky actions that the options ask for."""
    starts = getattr(options, "starts", "none")  # films begin with the episode
    asked = {"policy": options.policy, "epsilon": options.epsilon, "sticky": options.sticky, "starts": starts}
    if options.epsilon is not None:
        asked["policy"] = "epsilon"
    values = config.model_dump()
    values["evaluate"] |= {name: value for name, value in asked.items() if value is not None}
    config = loading.validate(values)
    check_sticky(config)
    return config


def find(path: Path, best: bool = False) -> Checkpoint:
    """Load one checkpoint file, or of a run directory the best weights, if asked for, or the newest good ones."""
    folder = path / "checkpoints"
    try:
        if path.is_file():
            return whole(checkpoint.load(path))
        saved = (load_best(folder, tell) if best else None) or checkpoint.load_newest(folder, tell)
    except (OSError, ValueError) as error:
        raise ConfigError(str(error)) from None
    if saved is None:
        raise ConfigError(f"{path}: holds no checkpoint; name a run directory or a file of its checkpoints/")
    return saved


def save_best(folder: Path, state: Checkpoint) -> None:
    """Write the weights that have played best, without what only a resume needs; OSError if they cannot be."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / BEST, checkpoint.encode_finite(state._replace(optimizer={}, algorithm={})))


def load_best(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """Load the weights that have played best; None if there are none, or if the file is damaged."""
    try:
        saved = checkpoint.load(folder / BEST)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warn(f"{error}; taking the newest checkpoint")
        return None
    return saved if saved.progress["evaluation_score"] is not None else None


def shipped_games() -> list[str]:
    """List the games that an agent is shipped for."""
    return sorted(path.stem for path in AGENTS.glob("*.npz"))


def shipped(game: str, written: str, field: str = "--pretrained") -> Checkpoint:
    """Load the shipped agent of a game, which the user wrote as `written` in `field`; ConfigError if there is none."""
    if game not in shipped_games():
        known = ", ".join(shipped_games()) or "none"
        raise ConfigError(f"{field}={written}: no agent of this game comes with dba3c; known: {known}")
    try:
        saved = checkpoint.load(AGENTS / f"{game}.npz")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{field}={written}: {error}; install dba3c again") from None
    return whole(saved)


def named(text: str, resolve: Resolve, field: str, best: bool = False) -> Checkpoint:
    """Load the agent of a run directory or a file, or the shipped one of a game, whatever `text` names."""
    path = Path(text)
    if path.is_file() or (path / "checkpoints").is_dir():
        return find(path, best)
    if path.suffix == ".npz" or "/" in text:
        raise ConfigError(f"{field}={text}: is no run directory with checkpoints, and no file of one; check the name")
    return shipped(resolve(SHIPPED_PROFILE, text, field), text, field)


def whole(saved: Checkpoint) -> Checkpoint:
    """Return an agent whose weights may be in 16 bits with weights in 32."""
    return saved._replace(weights=saved.weights.astype(np.float32))


def save(file: Path, agent: Checkpoint) -> None:
    """Write an agent; ConfigError if its weights do not fit into 16 bits."""
    with np.errstate(over="ignore"):
        small = agent.weights.astype(np.float16)
    if not np.isfinite(small).all():
        raise ConfigError("the agent has weights beyond ±65504, which do not fit into 16 bits; train it further")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, checkpoint.encode(agent._replace(weights=small, optimizer={}, algorithm={})))
