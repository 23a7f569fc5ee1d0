"""Start points of episodes in the middle of a game: a seed, and the actions that lead from its first frame there.

The human starts of Gorila and A3C were never published; these stand in for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dba3c.config.messages import ConfigError, cut
from dba3c.config.schema import Env
from dba3c.types import NOTHING, Array, Step, VectorEnv

# What decides where the same seed and actions lead to.
SETTINGS = ("profile", "game", "noop_max", "fire_reset", "sticky", "full_action_space", "width", "blind")


class Start(BaseModel):
    """Where an episode starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    actions: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=10**5)]


class StartFile(BaseModel):
    """What `dba3c export --starts` writes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    env: dict[str, bool | int | float | str]
    starts: Annotated[tuple[Start, ...], Field(min_length=1, max_length=10**4)]


def encode(env: Env, starts: Sequence[Start]) -> bytes:
    settings = {name: getattr(env, name) for name in SETTINGS}
    return StartFile(env=settings, starts=tuple(starts)).model_dump_json().encode()


def decode(data: bytes, env: Env, name: str) -> tuple[Start, ...]:
    """Read start points; ConfigError if there are none, or if they belong to another environment."""
    try:
        file = StartFile.model_validate_json(data)
    except ValidationError:
        raise ConfigError(
            f"evaluate.starts={name}: holds no start points; make it with dba3c export --starts"
        ) from None
    for key in SETTINGS:
        there, here = file.env.get(key), getattr(env, key)
        if there != here:
            raise ConfigError(
                f"evaluate.starts={name}: was made with env.{key}={cut(str(there))}, this evaluation has {here}; make"
                " another with dba3c export --starts"
            )
    return file.starts


class StartedEnv:
    """Simulators that play the actions of a start point by themselves: a reset takes numbers of points, not seeds."""

    def __init__(self, make: Callable[[], VectorEnv], n_sim: int, starts: Sequence[Start]) -> None:
        """`make` makes an environment of one simulator: the ways to the points have different lengths."""
        self.n_sim = n_sim
        self._starts = starts
        self._envs = [make() for _ in range(n_sim)]
        self.observation_space = self._envs[0].observation_space
        self.action_space = self._envs[0].action_space
        count = getattr(self.action_space, "n", 0)
        if max(max(start.actions, default=0) for start in starts) >= count:
            raise ConfigError(f"evaluate.starts: has actions that this game is without; it has {count}")

    def reset(self, seeds: Array) -> Array:
        points = [self._starts[int(number) % len(self._starts)] for number in seeds]
        return np.concatenate([played(env, point) for env, point in zip(self._envs, points, strict=True)])

    def step(self, actions: Array) -> Step:
        steps = [env.step(actions[number : number + 1]) for number, env in enumerate(self._envs)]
        final = [step.final_observations for step in steps if len(step.final_observations)]
        return Step(
            np.concatenate([step.observations for step in steps]),
            np.concatenate([step.rewards for step in steps]),
            np.concatenate([step.ended for step in steps]),
            np.concatenate([step.terminal for step in steps]),
            np.concatenate(final) if final else NOTHING,
            np.concatenate([step.cut for step in steps]),
        )

    def close(self) -> None:
        for env in self._envs:
            env.close()


def played(env: VectorEnv, start: Start) -> Array:
    """Go to a start point; return what is seen there, [1, …]."""
    observations = env.reset(np.array([start.seed], np.int32))
    for action in start.actions:
        step = env.step(np.array([action], env.action_space.dtype))
        if step.ended[0]:
            raise ConfigError("evaluate.starts: has a point behind the end of its episode")
        observations = step.observations
    return observations
