"""Vector environments, by profile: all pre-processing of observations lives in this folder."""

from __future__ import annotations

from dba3c.config import names
from dba3c.config.schema import Env
from dba3c.envs.atari_names import rom_checksum
from dba3c.types import Spaces, VectorEnv


def make(config: Env, n_sim: int, threads: int, max_frames: int | None = None) -> VectorEnv:
    """Make n_sim simulators of the configured game; `max_frames` overrides the length limit."""
    env: VectorEnv = names.find("env.profile", config.profile)(config, n_sim, threads, max_frames)
    return env


def spaces(config: Env) -> Spaces:
    """Say what one simulator shows and takes."""
    env = make(config, 1, threads=1)
    found = Spaces(env.observation_space, env.action_space)
    env.close()
    return found


def frames_per_step(config: Env) -> int:
    """Emulator frames of one decision."""
    frames: int = names.find("env.profile", config.profile).frames_per_step
    return frames


def fingerprint(config: Env) -> dict[str, str]:
    """Facts about the environment that must be the same on every rank."""
    return {f"the ROM of {config.game}": rom_checksum(config.game)}
