"""Gradients computed side by side, of shards of a batch or of several batches; minibatches, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from dba3c.seeds import time_order
from dba3c.types import Array, Batch, Gradient

Figures = dict[str, tf.Tensor]


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


class Shards:
    """Divides a batch by simulator.

    The gradients are added up in the order of the shards, so their number, not that of the cores, decides how the
    result rounds.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._threads = ThreadPoolExecutor(count, "gradient")  # which starts them when they are needed

    def mean(
        self, gradient: Callable[..., tuple[tf.Tensor, Figures]], arrays: Sequence[Array], before: Sequence[Array]
    ) -> tuple[Array, Figures]:
        """Average gradient and figures over the samples of arrays [T, B, …].

        `before` is what a memory needs besides them: its rows [B, M] and where episodes begin [T, B]; or nothing.
        """
        parts = self._simulators(arrays[0].shape[1])
        results = self._threads.map(lambda where: gradient(*cut(arrays, before, where)), parts)
        samples = np.array([len(arrays[0]) * (where.stop - where.start) for where in parts])
        mean: Array = np.zeros(1, np.float32)
        figures: Figures = {}
        for (part, part_figures), share in zip(results, (samples / samples.sum()).astype(np.float32), strict=True):
            mean = mean + part.numpy() * share
            figures = {name: figures.get(name, 0.0) + value * share for name, value in part_figures.items()}
        return mean, figures

    def _simulators(self, count: int) -> list[slice]:
        """Divide so many simulators among the shards, as evenly as possible."""
        ends = [count * number // self.count for number in range(self.count + 1)]
        return [slice(start, end) for start, end in pairwise(ends) if start < end]


def cut(arrays: Sequence[Array], before: Sequence[Array], where: slice) -> list[Array]:
    """Take some simulators' part of a batch."""
    memory, begins = before[:1], before[1:]
    return [*(flat(array[:, where]) for array in arrays), *(x[where] for x in memory), *(x[:, where] for x in begins)]


def flat(array: Array) -> Array:
    """[T, B, …] → [T·B, …]"""
    return array.reshape(-1, *array.shape[2:])


class Versioned(Protocol):
    """What computes gradients with the weights of some update, an agent."""

    @property
    def version(self) -> int: ...
    def gradients(self, batch: Batch) -> Iterator[Gradient]: ...


class Trainers:
    """Computes the gradients of several batches at the same time, each in a thread; hands them out in order.

    With n trainers, up to n - 1 updates come between the weights of a gradient and its own update: its staleness.
    """

    def __init__(self, agent: Versioned, crew: Callable[[], Mapping[str, int]], most: int) -> None:
        """`crew` says how many "trainers" there are, at any time, and what else the metrics are to show of it."""
        self._agent = agent
        self._crew = crew
        self._threads = ThreadPoolExecutor(most, "trainer")
        self._waiting: deque[Future[list[Gradient]]] = deque()

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        """Begin with a batch; wait for the oldest ones if that makes as many as there are trainers."""
        self._waiting.append(self._threads.submit(lambda: list(self._agent.gradients(batch))))
        while len(self._waiting) >= self._crew()["trainers"]:
            for gradient in self._waiting.popleft().result():
                yield self._described(gradient)

    def _described(self, gradient: Gradient) -> Gradient:
        staleness = float(self._agent.version - gradient.version)
        crew = {name: float(count) for name, count in self._crew().items()}
        return gradient._replace(
            sums=gradient.sums | {"staleness": staleness * gradient.samples},
            by_rank=gradient.by_rank | {"staleness": staleness} | crew,
        )
