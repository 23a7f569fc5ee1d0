"""A training in which one rank is killed while a gradient is on its way to the servers.

python -m tests.faults.killed_in_push ROLE RANK UPDATE dba3c.train WORDS…

worker: its gradient has reached the first server and not yet the second. server: a gradient has arrived and is not yet
applied. clerk: it has granted an update, but the worker does not know.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time

from dba3c.comm.asynchronous import GRADIENT, PUSH, Push, Service
from dba3c.comm.clerk import Answers
from dba3c.comm.server import Owner, Slices
from dba3c.types import Array

DELIVERY_SECONDS = 0.1  # after which what was sent has arrived

push, serve_push, answer = Slices.push, Owner.push, Service._answer


def die() -> None:
    time.sleep(DELIVERY_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def kill(role: str, update: int) -> None:
    """Replace what this rank does in its role from that update on."""

    def half_push(store: Slices, note: Push, gradient: Array) -> Array:
        if note.clock.updates >= update:
            first, part = next(iter(store._slices.items()))
            store._mail.requests.send(first, note, PUSH)
            store._mail.requests.send_array(first, gradient[part], GRADIENT)
            die()
        return push(store, note, gradient)

    def die_with_gradient(owner: Owner, rank: int, note: Push) -> None:
        if note.clock.updates >= update:
            die()
        serve_push(owner, rank, note)

    def die_with_ticket(service: Service, answers: Answers) -> None:
        if any(ticket.group and ticket.clock.updates >= update for _, ticket in answers):
            die()
        answer(service, answers)

    if role == "worker":
        Slices.push = half_push  # type: ignore[method-assign]
    elif role == "server":
        Owner.push = die_with_gradient  # type: ignore[method-assign]
    else:
        Service._answer = die_with_ticket  # type: ignore[method-assign]


if __name__ == "__main__":
    ROLE, VICTIM, UPDATE, PROGRAM, *WORDS = sys.argv[1:]
    if os.environ["OMPI_COMM_WORLD_RANK"] == VICTIM:  # its number when the job started
        kill(ROLE, int(UPDATE))
    sys.argv = [PROGRAM, *WORDS]
    runpy.run_module(PROGRAM, run_name="__main__")
