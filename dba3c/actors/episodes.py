"""Raw scores and lengths of episodes."""

from __future__ import annotations

import numpy as np

from dba3c.types import Episode, Step


class RunningEpisodes:
    """The episodes that a group of simulators is in."""

    def __init__(self, simulators: int) -> None:
        self._scores = np.zeros(simulators, np.float64)
        self._steps = np.zeros(simulators, np.int64)

    def count(self, step: Step) -> list[Episode]:
        """Add one step; return the episodes that ended with it. Those of rebuilt simulators never end."""
        if step.rebuilt:
            self._forget(slice(None))
            return []
        self._scores += step.rewards
        self._steps += 1
        ended = np.flatnonzero(step.ended)
        episodes = [Episode(float(self._scores[i]), int(self._steps[i])) for i in ended]
        self._forget(ended)
        return episodes

    def _forget(self, simulators: slice | np.ndarray) -> None:  # type: ignore[type-arg]
        self._scores[simulators] = 0.0
        self._steps[simulators] = 0
