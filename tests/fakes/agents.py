"""A small agent with its first weights, as a run directory holds it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from dba3c.config.schema import Config
from dba3c.run_files import checkpoint
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.progress import Progress
from dba3c.training import build
from tests.fakes.settings import settings

UPDATES = 7


def small(*overrides: str) -> Config:
    """Short games for a small network."""
    return settings("env.game=space_invaders", "model.hidden=16", "evaluate.max_frames=900", *overrides)


def untrained(config: Config) -> Checkpoint:
    weights = build.agent(config).weights.numpy()
    progress = asdict(Progress(updates=UPDATES, steps=560, evaluation_score=12.5))
    return Checkpoint(weights, {"m": np.zeros_like(weights)}, progress, config, {})


def saved(run_dir: Path, config: Config) -> Path:
    checkpoint.save(run_dir / "checkpoints", untrained(config), keep=1)
    return run_dir
