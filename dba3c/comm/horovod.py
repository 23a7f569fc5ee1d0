"""Transport over Horovod: its all-reduce for the message of an update; mpi4py, on the same MPI, for the rest."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from dba3c.comm.mpi import MpiTransport
from dba3c.types import Array


class HorovodTransport(MpiTransport):
    def __init__(self, comm: Any) -> None:
        super().__init__(comm)
        os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")  # ms between looks for work; each update waits for one
        os.environ.setdefault("HOROVOD_FUSION_THRESHOLD", "0")  # there is only one message to send
        import horovod.tensorflow as hvd

        hvd.init()
        self._hvd = hvd

    def sum(self, array: Array) -> None:
        array[:] = self._hvd.allreduce(tf.constant(array), op=self._hvd.Sum, name="update").numpy()
