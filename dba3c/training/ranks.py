"""The ranks that train together: what depends on who they are, and what to do when they become fewer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from dba3c.comm import make_watchdog
from dba3c.comm.mpi import RanksLostError
from dba3c.comm.watchdog import Watchdog, Watched
from dba3c.config.schema import Config
from dba3c.job.world import World
from dba3c.training import build
from dba3c.training.injected import Faults, FaultyCommunicator
from dba3c.training.state import State
from dba3c.types import Communicator


class Crew:
    def __init__(self, world: World, config: Config, faults: Faults) -> None:
        self.world, self._config, self._faults = world, config, faults
        self.transport: Any = build.transport(config, world.comm)
        self.lost: list[str] = []  # ranks that died on the way
        self._watchdog: Watchdog | None = None

    def work(
        self,
        make: Callable[[Any], Communicator],
        agent: Any,
        missing: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        """Begin to update together; `missing` is told who keeps the others waiting for ever, and must end the job."""
        self._watchdog = make_watchdog(self._config.comm, self.transport, self.world.hosts, missing, say)
        self.communicator = make(self.transport)
        if self._watchdog is not None:
            self.communicator = Watched(self.communicator, self._watchdog)
        if self._faults:
            self.communicator = FaultyCommunicator(self.communicator, self._faults, agent)

    def rest(self) -> None:
        self.communicator.close()
        if self._watchdog is not None:
            self._watchdog.close()

    def elsewhere(self) -> contextlib.AbstractContextManager[None]:
        """While the ranks do something that may take longer than an update."""
        return self._watchdog.elsewhere() if self._watchdog else contextlib.nullcontext()

    def names(self, ranks: Iterable[int]) -> str:
        return ", ".join(f"rank {rank} on {self.world.hosts[rank]}" for rank in ranks)

    def bury_the_dead(self, state: State) -> str:
        """Go on with the ranks that are left, from the newest update that one of them has; the obituary."""
        while True:
            with contextlib.suppress(RanksLostError):  # another one may die meanwhile
                return self._bury(state)

    def _bury(self, state: State) -> str:
        before, self.transport = self.world, self.transport.survivors()
        self.rest()
        alive, updates = zip(*self.transport.gather((before.rank, state.progress.updates)), strict=True)
        if min(updates) < max(updates):
            newest = updates.index(max(updates))
            theirs = self.transport.broadcast(state.snapshot() if self.transport.rank == newest else None, newest)
            if state.progress.updates < max(updates):
                state.restore(theirs)
        dead = [self.names([rank]) for rank in range(before.size) if rank not in alive]
        self.lost += dead
        self.world = before._replace(
            comm=self.transport.comm,
            rank=self.transport.rank,
            size=self.transport.size,
            places=[before.places[rank] for rank in alive],
        )
        batch, who = self._config.batch_size, ", ".join(dead)
        return (
            f"{who} died in update {max(updates) + 1:,}: {len(alive)} of {before.size} ranks go on, and from here on"
            f" an update learns from {batch * len(alive):,} data points instead of {batch * before.size:,}"
        )
