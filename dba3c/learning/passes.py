"""How a segment is cut into minibatches that are learned from one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dba3c.seeds import time_order
from dba3c.types import Array


class Passes(NamedTuple):
    """Several passes over a segment, each in another order."""

    passes: int
    parts: int  # minibatches of a pass

    def minibatches(self, count: int, seed: int, update: int, whole: bool) -> Iterator[Array | slice]:
        """Draw time steps, of all simulators, for each minibatch; or take every nth simulator, in a drawn order.

        Both are the same in every layout of the job, as n divides the simulators of a rank.
        """
        if self.passes == self.parts == 1:
            yield slice(None)  # all together, in the order of play
            return
        for number in range(self.passes):
            order = time_order(seed, update, number, self.parts if whole else count)
            for first in range(self.parts):
                yield slice(order[first], None, self.parts) if whole else order[first :: self.parts]
