"""The newest steps of some simulators, stored frame by frame."""

from __future__ import annotations

import numpy as np

from dba3c.learning.returns import n_step_returns
from dba3c.types import Array, Batch, Spaces


class Ring:
    """The newest steps of some simulators, frame by frame: an observation is a stack of the newest frames.

    A step has one new frame, and before an episode's first there are zeros, so stacks need not be stored. Rows are
    times; the oldest is written over.
    """

    def __init__(self, rows: int, simulators: int, spaces: Spaces, history: int) -> None:
        channels, *rest = spaces.observation.shape
        self._history = history
        self._shape = spaces.observation.shape
        each = (rows, simulators)
        self._frames = np.zeros((*each, channels // history, *rest), spaces.observation.dtype)
        self._actions = np.zeros((*each, *(spaces.action.shape or ())), spaces.action.dtype)
        self._rewards = np.zeros(each, np.float32)
        self._discounts = np.zeros(each, np.float32)
        self._ages = np.zeros(each, np.int32)  # steps since the episode began
        self._versions = np.zeros(each, np.int64)
        self.clear()

    @property
    def simulators(self) -> int:
        return int(self._rewards.shape[1])

    def clear(self) -> None:
        self._written = 0  # rows, over and over
        self._next_ages = np.zeros(self._rewards.shape[1], np.int32)
        self._after: Array | None = None  # what was seen after the newest row

    @property
    def steps(self) -> int:
        """Count the steps that are kept."""
        rows, simulators = self._rewards.shape
        return min(self._written, rows) * simulators

    def write(self, batch: Batch) -> None:
        """Keep the steps of a segment."""
        if self._after is None or not np.array_equal(self._after, batch.observations[0]):
            self._break()
        for t in range(len(batch.rewards)):
            row = self._written % len(self._rewards)
            newest = self._frames.shape[2]
            self._frames[row] = batch.observations[t, :, -newest:]
            self._actions[row] = batch.actions[t]
            self._rewards[row] = batch.rewards[t]
            self._discounts[row] = batch.discounts[t]
            self._versions[row] = batch.versions[t]
            self._ages[row] = self._next_ages
            self._next_ages = np.where(batch.ended[t], 0, self._next_ages + 1)
            self._written += 1
        self._after = batch.observations[-1].copy()

    def _break(self) -> None:
        """Begin new episodes after ones without an end, as simulators were rebuilt: what came next is not known."""
        self._next_ages[:] = 0
        if self._written:
            self._discounts[(self._written - 1) % len(self._rewards)] = 0

    def starts(self, length: int) -> range:
        """Say from which rows, by when they were written, so many steps and the state after them are known."""
        oldest = max(0, self._written - len(self._rewards) + self._history - 1)  # its stack is whole
        return range(oldest, self._written - length)

    def places(self, drawn: Array, length: int, ranks: int = 1) -> tuple[Array, Array]:
        """Turn random bits into rows and simulators of so many ranks, among which all are equally likely: [n] → [n]."""
        starts, simulators = self.starts(length), self.simulators * ranks
        chosen = drawn % np.uint64(max(1, len(starts) * simulators))
        rows, simulator = np.divmod(chosen.astype(np.int64), simulators)
        return starts.start + rows, simulator

    def transitions(self, rows: Array, simulators: Array, length: int) -> Batch:
        """Make a batch of one step of each of `length` played steps: [n], [n] → T = 1, B = n."""
        steps = [((rows + step) % len(self._rewards), simulators) for step in range(length)]
        rewards = np.stack([self._rewards[place] for place in steps])  # [length, n]
        discounts = np.stack([self._discounts[place] for place in steps])
        after = (rows + length, simulators)
        actions = np.stack([self._actions[steps[0]], self._actions[after[0] % len(self._rewards), simulators]])
        nothing = np.zeros_like(rewards[:1])
        return Batch(
            observations=np.stack([self.observations(rows, simulators), self.observations(*after)]),
            actions=actions,
            log_probabilities=nothing,
            rewards=n_step_returns(rewards, discounts, nothing[0])[:1],
            discounts=np.prod(discounts, axis=0, keepdims=True),
            ended=nothing.astype(bool),
            values=np.zeros((2, len(rows)), np.float32),
            versions=self._versions[steps[0]][np.newaxis],
            past_returns=nothing,
            memory=np.zeros((len(rows), 0), np.float32),
            steps=0,
            episodes=[],
        )

    def observations(self, rows: Array, simulators: Array) -> Array:
        """Rebuild what was seen: [n], [n] → [n, …]."""
        ages = self._ages[rows % len(self._rewards), simulators]
        stacked = np.zeros((len(rows), self._history, *self._frames.shape[2:]), self._frames.dtype)
        for back in range(self._history):
            known = ages >= back
            where = ((rows[known] - back) % len(self._rewards), simulators[known])
            stacked[known, self._history - 1 - back] = self._frames[where]
        return stacked.reshape(len(rows), *self._shape)


def bytes_per_step(spaces: Spaces, history: int) -> int:
    """Count what the ring keeps of one step of one simulator: its frame, action, reward, discount, age and version."""
    frame = int(np.prod(spaces.observation.shape)) // history * spaces.observation.dtype.itemsize
    action = int(np.prod(spaces.action.shape or (1,))) * spaces.action.dtype.itemsize
    return frame + action + 4 + 4 + 4 + 8
