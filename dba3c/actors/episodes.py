"""Raw scores and lengths of episodes."""

from __future__ import annotations

import numpy as np

from dba3c.types import Episode, Step


class Games:
    """Raw scores and lengths of the running games."""

    def __init__(self, simulators: int) -> None:
        self._scores = np.zeros(simulators, np.float64)
        self._steps = np.zeros(simulators, np.int64)

    def count(self, step: Step) -> list[Episode]:
        """Add one step; the games that ended with it. Games that were lost with their simulators never end."""
        if step.lost:
            self._scores[:], self._steps[:] = 0.0, 0
            return []
        self._scores += step.rewards
        self._steps += 1
        ended = np.flatnonzero(step.ended)
        episodes = [Episode(float(self._scores[i]), int(self._steps[i])) for i in ended]
        self._scores[ended], self._steps[ended] = 0.0, 0
        return episodes
