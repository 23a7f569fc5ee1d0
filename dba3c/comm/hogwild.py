"""The store of comm.strategy=hogwild: weights and slots in memory that all ranks of one host share, without any lock.

Every rank changes them in place, as the threads of A3C do: an update may read what another one has half written, and
of two that write an element at the same moment one may be lost. That is the published algorithm.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from dba3c.comm.allreduce import Surroundings
from dba3c.comm.asynchronous import Asynchronous, Handler, Mail, Push
from dba3c.config.schema import Comm
from dba3c.types import Array


class SharedMemory:
    def __init__(self, around: Surroundings, mail: Mail) -> None:
        self.handlers: dict[int, Handler] = {}
        self._mail = mail
        self._optimizer = around.optimizer
        self._rank = around.transport.rank
        state = self._optimizer.state()
        self._start = int(state.pop("steps"))
        comm = around.transport.comm
        size, ranks = self._optimizer.size, around.transport.size
        counters = ranks * MPI.INT64_T.size
        length = counters + (1 + len(state)) * size * MPI.FLOAT.size
        self._window = MPI.Win.Allocate_shared(length if self._rank == 0 else 0, MPI.FLOAT.size, comm=comm)
        memory = memoryview(self._window.Shared_query(0)[0])  # type: ignore[arg-type]
        self._applied: Array = np.frombuffer(memory, np.int64, ranks)  # by each rank
        rows: list[Array] = list(np.frombuffer(memory, np.float32, offset=counters).reshape(1 + len(state), size))
        self._weights, *slots = rows
        self._slots = dict(zip(state, slots, strict=True))
        if self._rank == 0:
            self._applied[:] = 0
            self._weights[:] = self._optimizer.weights()
            for name, values in state.items():
                self._slots[name][:] = values
        comm.Barrier()

    def push(self, note: Push, gradient: Array) -> Array:
        self._optimizer.apply_to(self._weights, self._slots, gradient, note.clock, note.applied, note.scale)
        self._applied[self._rank] += 1
        return self.pull()

    def pull(self) -> Array:
        return self._weights.copy()

    def whole(self, applied: int) -> tuple[Array, dict[str, Array]]:
        self._mail.wait_for(lambda: self._start + int(self._applied.sum()) >= applied)
        slots = {name: values.copy() for name, values in self._slots.items()}
        return self.pull(), slots | {"steps": np.asarray(applied)}


def hogwild(config: Comm, around: Surroundings) -> Asynchronous:
    """Make the strategy for shared memory."""
    return Asynchronous(config, around, SharedMemory)
