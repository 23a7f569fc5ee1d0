"""Vector environments, by profile: all pre-processing of observations lives in this folder."""

from __future__ import annotations

from collections.abc import Callable

from dba3c.config.schema import Env
from dba3c.envs.atari_names import rom_checksum
from dba3c.envs.deepmind import DeepMindEnv
from dba3c.envs.paper import PaperEnv
from dba3c.types import VectorEnv

PROFILES: dict[str, Callable[[Env, int, int, int | None], VectorEnv]] = {"deepmind": DeepMindEnv, "paper": PaperEnv}


def make(config: Env, n_sim: int, threads: int, max_frames: int | None = None) -> VectorEnv:
    """n_sim simulators of the configured game; `max_frames` overrides the length limit."""
    return PROFILES[config.profile](config, n_sim, threads, max_frames)


def fingerprint(config: Env) -> dict[str, str]:
    """Facts about the environment that must be the same on every rank."""
    return {f"the ROM of {config.game}": rom_checksum(config.game)}
