"""Vector environments, by profile: all pre-processing of observations lives in this folder."""

from __future__ import annotations

from dba3c.config import names
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
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


def profile_of(name: str) -> str:
    """Name the profile of a game that a user wrote without one: paper stands for those of Atari games."""
    from dba3c.envs import atari_names, catch, gymnasium_ids

    if name.lower() == catch.GAME:
        return "catch"
    try:
        atari_names.resolve_game(name, "env.game")
    except ConfigError:
        return "gymnasium" if gymnasium_ids.is_like_an_id(name) else "paper"
    return "paper"


def resolve_title(profile: str, name: str, field: str) -> str:
    """Return a game's own name, by which its profile knows it; ConfigError if there is no such game."""
    title: str = names.find("env.profile", profile).resolve(name, field)
    return title


def frames_per_step(config: Env) -> int:
    """Emulator frames of one decision."""
    frames: int = names.find("env.profile", config.profile).frames_per_step
    return frames


def history(config: Env) -> int:
    """Frames that an observation is a stack of, oldest first, with zeros before an episode's first."""
    return int(getattr(names.find("env.profile", config.profile), "history", 1))


def fingerprint(config: Env) -> dict[str, str]:
    """Facts about the environment that must be the same on every rank."""
    facts: dict[str, str] = names.find("env.profile", config.profile).fingerprint(config)
    return facts
