"""Experience replay: an actor around an actor, which keeps what was played and yields random samples of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from dba3c.actors.segment import exchange, join
from dba3c.config.schema import Config
from dba3c.learning.returns import n_step_returns
from dba3c.seeds import SAMPLES, draw
from dba3c.timings import Timings
from dba3c.types import BY_TIME, Actor, Array, Batch, Episode, Policy, Spaces, Transport


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


class Memory(Protocol):
    """Where samples come from; what is drawn depends on the seed and the update."""

    def sample(self, count: int, update: int) -> Batch: ...


class Own:
    """Draws from this rank's own memory."""

    def __init__(self, ring: Ring, length: int, seed: int, worker: int) -> None:
        self._ring = ring
        self._length = length
        self._key = (seed, SAMPLES)
        self._worker = worker

    def sample(self, count: int, update: int) -> Batch:
        """Draw with replacement."""
        drawn = draw(*self._key, update, self._worker, np.arange(count))
        return self._ring.transitions(*self._ring.places(drawn, self._length), self._length)


class Everyones:
    """Draws from the memories of all ranks as if they were one: what a rank keeps travels to the rank that drew it.

    All ranks have kept equally many steps, so each rank knows what all of them draw, and no request is sent.
    """

    def __init__(self, ring: Ring, length: int, seed: int, transport: Transport) -> None:
        self._ring = ring
        self._length = length
        self._key = (seed, SAMPLES)
        self._transport = transport

    def sample(self, count: int, update: int) -> Batch:
        """Draw one batch for all ranks, with replacement, and take this rank's part of it."""
        size = self._transport.size
        drawn = draw(*self._key, update, np.arange(count * size))
        rows, simulators = self._ring.places(drawn, self._length, size)  # simulators of the whole job
        owners, own = np.divmod(simulators, self._ring.simulators)
        mine = owners == self._transport.rank
        parts = []
        for learner in range(size):
            wanted = mine & (np.arange(len(drawn)) // max(1, count) == learner)
            parts.append(self._ring.transitions(rows[wanted], own[wanted], self._length))
        learned = slice(self._transport.rank * count, (self._transport.rank + 1) * count)
        return in_order(join(exchange(self._transport, parts)), owners[learned])


def in_order(batch: Batch, owners: Array) -> Batch:
    """Put samples that are sorted by their owners into the order in which they were drawn."""
    order = np.argsort(np.argsort(owners, kind="stable"))
    return batch._replace(
        **{name: getattr(batch, name)[:, order] for name in BY_TIME}, memory=batch.memory[order], episodes=[]
    )


class Experience:
    """Plays, keeps what it has seen, and yields a random batch of it every so many steps."""

    def __init__(
        self, config: Config, actor: Actor, policy: Policy, ring: Ring, memory: Memory, timings: Timings
    ) -> None:
        self._ring = ring
        self._memory = memory
        self._actor = actor
        self._policy = policy
        self._timings = timings
        self._warm_up = config.experience.warm_up_steps
        self._batch_size = config.batch_size
        self._updates = config.env.n_sim * config.actor.n_steps // config.experience.steps_per_update
        self._left = 0  # updates until it plays again

    def restart(self, update: int) -> None:
        """Start with an empty memory, which is filled again before learning continues."""
        self._ring.clear()
        self._left = 0
        self._actor.restart(update)

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        steps, episodes = 0, list[Episode]()
        if not self._left:
            played = next(self._actor)
            if played is None:
                return None
            steps, episodes = played.steps, played.episodes
            with self._timings.measure("sample"):
                self._ring.write(played)
            self._left = self._updates
        warm = self._ring.steps >= self._warm_up
        self._left = self._left - 1 if warm else 0
        with self._timings.measure("sample"):
            batch = self._memory.sample(self._batch_size if warm else 0, self._policy.version)
            return batch._replace(steps=steps, episodes=episodes)

    def close(self) -> None:
        self._actor.close()


def make(
    config: Config,
    actor: Actor,
    policy: Policy,
    spaces: Spaces,
    history: int,
    worker: int,
    transport: Transport | None,
    timings: Timings,
) -> Experience:
    """Put a memory around an actor: the rank's own one or, with experience.scope=global, its part of a common one."""
    ring = Ring(config.experience.capacity_steps // config.env.n_sim, config.env.n_sim, spaces, history)
    length, seed = config.experience.n_steps, config.train.seed
    memory: Memory = Own(ring, length, seed, worker)
    if config.experience.scope == "global" and transport is not None:
        memory = Everyones(ring, length, seed, transport)
    return Experience(config, actor, policy, ring, memory, timings)


def bytes_per_step(spaces: Spaces, history: int) -> int:
    """Count what the ring keeps of one step of one simulator: its frame, action, reward, discount, age and version."""
    frame = int(np.prod(spaces.observation.shape)) // history * spaces.observation.dtype.itemsize
    action = int(np.prod(spaces.action.shape or (1,))) * spaces.action.dtype.itemsize
    return frame + action + 4 + 4 + 4 + 8
