"""The store of comm.strategy=hogwild: weights and slots in memory that all ranks of one host share, without any lock.

Every rank changes them in place, as the threads of A3C do: an update may read what another one has half written, and
of two that write an element at the same moment one may be lost. That is the published algorithm. The slots are shared,
too, or (optimizer.shared=false) each rank changes its own; where the ranks meet, their mean is what is saved.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from dba3c.comm.allreduce import Surroundings
from dba3c.comm.asynchronous import Asynchronous, Handler, Mail, Push
from dba3c.config.schema import Comm
from dba3c.types import Array


class SharedMemory:
    """Weights [P] and slots [copies, slots, P] behind counters of what each rank has applied."""

    def __init__(self, around: Surroundings, mail: Mail) -> None:
        self.handlers: dict[int, Handler] = {}
        self._mail = mail
        self._optimizer = around.optimizer
        self._rank = around.transport.rank
        state = self._optimizer.state()
        self._start = int(state.pop("steps"))
        self._names = list(state)
        ranks = around.transport.size
        copies = 1 if self._optimizer.shared else ranks
        self._applied, self._weights, self._slots = self._allocate(around.transport.comm, ranks, copies)
        if self._rank == 0:
            self._applied[:] = 0
            self._weights[:] = self._optimizer.weights()
            for index, values in enumerate(state.values()):
                self._slots[:, index] = values
        own = self._slots[0 if self._optimizer.shared else self._rank]
        self._own_slots: dict[str, Array] = dict(zip(self._names, own, strict=True))
        around.transport.comm.Barrier()

    def push(self, note: Push, gradient: Array) -> Array:
        self._optimizer.apply_to(self._weights, self._own_slots, gradient, note.clock, note.applied, note.scale)
        self._applied[self._rank] += 1
        return self.pull()

    def pull(self) -> Array:
        return self._weights.copy()

    def whole(self, applied: int) -> tuple[Array, dict[str, Array]]:
        self._mail.wait_for(lambda: self._start + int(self._applied.sum()) >= applied)
        slots = dict(zip(self._names, self._slots.mean(axis=0), strict=True))
        return self.pull(), slots | {"steps": np.asarray(applied)}

    def _allocate(self, comm: MPI.Intracomm, ranks: int, copies: int) -> tuple[Array, Array, Array]:
        """Map the memory of rank 0: counters [ranks], weights [P], slots [copies, slots, P]."""
        size, slots = self._optimizer.size, len(self._names)
        counters = ranks * MPI.INT64_T.size
        length = counters + (1 + copies * slots) * size * MPI.FLOAT.size
        self._window = MPI.Win.Allocate_shared(length if self._rank == 0 else 0, MPI.FLOAT.size, comm=comm)
        memory = memoryview(self._window.Shared_query(0)[0])  # type: ignore[arg-type]
        vectors: Array = np.frombuffer(memory, np.float32, offset=counters).reshape(-1, size)
        return np.frombuffer(memory, np.int64, ranks), vectors[0], vectors[1:].reshape(copies, slots, size)


def hogwild(config: Comm, around: Surroundings) -> Asynchronous:
    """Make the strategy for shared memory."""
    return Asynchronous(config, around, SharedMemory)
