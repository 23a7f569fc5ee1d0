"""The configuration that tests start from."""

from __future__ import annotations

from dba3c.config import loading
from dba3c.config.schema import Config

PINNED = (  # what tests count on, whatever becomes of the preset
    "env.game=breakout", "env.profile=deepmind", "env.n_sim=16", "env.reward_clip=1", "actor.kind=lockstep",
    "actor.n_steps=5", "model.torso=nips", "model.hidden=128", "algorithm.gamma=0.99", "algorithm.entropy=0.01",
    "algorithm.clip=global", "optimizer.name=adam", "optimizer.learning_rate=0.001", "optimizer.beta1=0.8",
    "optimizer.beta2=0.75", "train.seed=0",
)  # fmt: skip


def settings(*overrides: str) -> Config:
    """The preset `a2c` with overrides `section.key=value`."""
    return loading.load("a2c", PINNED + overrides)
