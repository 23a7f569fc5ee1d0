"""Experience replay: an actor around an actor, which keeps what was played and yields random samples of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from dba3c.actors.ring import Ring
from dba3c.actors.segment import join
from dba3c.config.schema import Config
from dba3c.seeds import SAMPLES, draw
from dba3c.timings import Timings
from dba3c.types import BY_TIME, Actor, Array, Batch, Episode, Policy, Spaces, Transport

POLL_SECONDS = 0.0001  # between two looks whether another rank's transitions have arrived


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

    All ranks have kept equally many steps, so each knows what all of them draw: nobody has to ask.
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


def exchange(transport: Transport, parts: list[Batch]) -> list[Batch]:
    """Send each rank its part; return what the ranks have sent to this one.

    Nobody is an exchange ahead, as there is an update of all ranks between two of them.
    """
    received = {transport.rank: parts[transport.rank]}
    for rank in range(transport.size):
        if rank != transport.rank:
            transport.send(rank, parts[rank])
    while len(received) < transport.size:
        arrived = transport.receive()
        if arrived is None:
            time.sleep(POLL_SECONDS)
        else:
            received[arrived[0]] = Batch(*arrived[1])
    return [received[rank] for rank in range(transport.size)]


def in_order(batch: Batch, owners: Array) -> Batch:
    """Put samples that are sorted by their owners into the order in which they were drawn."""
    order = np.argsort(np.argsort(owners, kind="stable"))
    return batch._replace(
        **{name: getattr(batch, name)[:, order] for name in BY_TIME}, memory=batch.memory[order], episodes=[]
    )


class Experience:
    """Plays, and lets learn from what was seen: every so many steps one batch, drawn anew."""

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
