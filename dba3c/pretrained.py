"""Trained agents that come with the package: checkpoints without optimizer, their weights in 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dba3c import checkpoint
from dba3c.checkpoint import Checkpoint
from dba3c.config import ConfigError

AGENTS = Path(__file__).with_name("agents")


def games() -> list[str]:
    """Those that there is an agent for."""
    return sorted(path.stem for path in AGENTS.glob("*.npz"))


def load(game: str) -> Checkpoint:
    """The agent of a game, ready to play; ConfigError if there is none."""
    from dba3c.envs import resolve_game  # loads ale-py, which --help need not wait for

    name = resolve_game(game, "--pretrained")
    if name not in games():
        known = ", ".join(games()) or "none"
        raise ConfigError(f"--pretrained={game}: no agent of this game comes with dba3c; known: {known}")
    try:
        saved = checkpoint.load(AGENTS / f"{name}.npz")
    except (OSError, ValueError) as error:
        raise ConfigError(f"--pretrained={game}: {error}; install dba3c again") from None
    return saved._replace(weights=saved.weights.astype(np.float32))


def save(file: Path, agent: Checkpoint) -> None:
    """Write an agent; ConfigError if its weights do not fit into 16 bits."""
    with np.errstate(over="ignore"):
        small = agent.weights.astype(np.float16)
    if not np.isfinite(small).all():
        raise ConfigError("the agent has weights beyond ±65504, which do not fit into 16 bits; train it further")
    file.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_atomically(file, checkpoint.encode(agent._replace(weights=small, optimizer={})))
