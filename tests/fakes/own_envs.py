"""Environments of a package of its own, as users have them: package:Name-v0."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 5  # steps of an episode, which then is truncated or, after an action above its bounds, terminated


class Counter(gymnasium.Env[Any, Any]):
    """Shows how many steps its episode has, in the way that `observation` says; keeps what it was given."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, observation: str, action_space: spaces.Space[Any], render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.action_space = action_space
        self._kind = observation
        self.observation_space = {
            "vector": spaces.Box(-np.inf, np.inf, (2,), np.float64),
            "picture": spaces.Box(0, 255, (6, 5, 3), np.uint8),
            "gray": spaces.Box(0, 255, (6, 5), np.uint8),
            "stack": spaces.Box(0, 255, (4, 8, 8), np.uint8),
            "dict": spaces.Dict({"place": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))}),
            "sequence": spaces.Sequence(spaces.Discrete(3)),
        }[observation]
        self.given: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._first = int(self.np_random.integers(100))
        return self._show(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.given.append(action)
        self._steps += 1
        return self._show(), 2.5, self._steps == LENGTH and bool(np.any(np.asarray(action) == 1)), False, {}

    def render(self) -> Any:
        return np.full((6, 8, 3), self._steps, np.uint8)

    def _show(self) -> Any:
        if self._kind == "vector":
            return np.array([self._first, self._steps], np.float64)
        if self._kind == "dict":
            return {"place": self._steps % 3, "speed": np.array([0.5, -0.5], np.float32)}
        picture = np.zeros(self.observation_space.shape, np.uint8)
        picture[0, 1] = self._steps
        return picture


BOX = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32))
for name, observation, action in (
    ("Vector-v0", "vector", spaces.Discrete(3, start=5)),
    ("Vector-v2", "vector", spaces.Discrete(3, start=5)),
    ("Box-v0", "vector", BOX),
    ("Picture-v0", "picture", BOX),
    ("Gray-v0", "gray", BOX),
    ("Stack-v0", "stack", BOX),
    ("Dict-v0", "dict", BOX),
    ("Sequence-v0", "sequence", BOX),
    ("Many-v0", "vector", spaces.MultiDiscrete([2, 3])),
):
    gymnasium.register(
        f"Own/{name}", Counter, max_episode_steps=LENGTH, kwargs={"observation": observation, "action_space": action}
    )
