"""The store of comm.strategy=server: several ranks own a slice of the weights each, and a thread of theirs serves it.

An owner applies what arrives in the order of its arrival, whatever the order at the others; a slice is never read
while it is half updated, but the slices of one answer may be of different age.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from dba3c.comm.allreduce import Surroundings
from dba3c.comm.asynchronous import GRADIENT, PULL, PUSH, STATE, WEIGHTS, WHOLE, Asynchronous, Handler, Mail, Push
from dba3c.config.schema import Comm
from dba3c.types import Array, Optimizer

LANES = 16  # float32 numbers of an AVX-512 register
Pushed = tuple[Array, Push]  # the gradient of a mean loss, and what is said about it


class Slices:
    """Weights and slots that are divided among owners by position."""

    def __init__(self, around: Surroundings, mail: Mail) -> None:
        optimizer = around.optimizer
        self._mail = mail
        self._slices = dict(zip(around.owners, slices(optimizer.size, len(around.owners)), strict=True))
        self._size = optimizer.size
        self._slots = [name for name in optimizer.state() if name != "steps"]
        self.handlers: dict[int, Handler] = {}
        if around.transport.rank in self._slices:
            owner = Owner(mail, optimizer.part(self._slices[around.transport.rank]), self._slots)
            self.handlers = {PUSH: owner.push, PULL: owner.pull, WHOLE: owner.whole}

    def push(self, note: Push, gradient: Array) -> Array:
        for rank, part in self._slices.items():
            self._mail.requests.send(rank, note, PUSH)
            self._mail.requests.send_array(rank, gradient[part], GRADIENT)
        return self._weights()

    def pull(self) -> Array:
        for rank in self._slices:
            self._mail.requests.send(rank, None, PULL)
        return self._weights()

    def whole(self, applied: int) -> tuple[Array, dict[str, Array]]:
        for rank in self._slices:
            self._mail.requests.send(rank, applied, WHOLE)
        rows = 1 + len(self._slots)
        parts = {rank: np.empty((rows, part.stop - part.start), np.float32) for rank, part in self._slices.items()}
        self._mail.collect(parts.items(), STATE)
        weights, *slots = np.concatenate(list(parts.values()), axis=1)
        return weights, dict(zip(self._slots, slots, strict=True)) | {"steps": np.int64(applied)}

    def _weights(self) -> Array:
        weights = np.empty(self._size, np.float32)
        self._mail.collect(((rank, weights[part]) for rank, part in self._slices.items()), WEIGHTS)
        return weights


def slices(size: int, count: int) -> list[slice]:
    """Divide a vector into equal slices, to within the 16 numbers that processors take at once.

    TensorFlow rounds a reciprocal root differently for numbers that are left over: only those of the whole may be.
    """
    bounds = (np.linspace(0, size, count + 1)[:-1] // LANES * LANES).astype(int).tolist()
    return [slice(start, stop) for start, stop in zip(bounds, [*bounds[1:], size], strict=True)]


class Owner:
    """Serves one slice of the weights."""

    def __init__(self, mail: Mail, optimizer: Optimizer, slots: list[str]) -> None:
        self._mail = mail
        self._optimizer = optimizer
        self._slots = slots
        self._applied = int(optimizer.state()["steps"])
        self._gradients: defaultdict[int, dict[int, Pushed]] = defaultdict(dict)  # by update and rank
        self._waiting: list[tuple[int, int]] = []  # ranks that want the state after so many steps

    def push(self, rank: int, note: Push) -> None:
        """Apply a gradient as soon as those of its group are there, and send all of them the new weights."""
        gradient = np.empty(self._optimizer.size, np.float32)
        self._mail.wait_for(self._mail.requests.receive_array(rank, gradient, GRADIENT))
        gradients = self._gradients[note.clock.updates]
        gradients[rank] = gradient, note
        if len(gradients) == len(note.group):
            del self._gradients[note.clock.updates]
            mean, scale = mean_of([gradients[each] for each in sorted(gradients)])
            self._optimizer.apply(mean, note.clock, scale)
            self._applied += 1
            for each in note.group:
                self.pull(each)
            self._answer_waiting()

    def pull(self, rank: int, _note: None = None) -> None:
        self._mail.answers.send_array(rank, self._optimizer.weights(), WEIGHTS)

    def whole(self, rank: int, applied: int) -> None:
        """Send weights and slots, once the updates up to the meeting are applied."""
        self._waiting.append((rank, applied))
        self._answer_waiting()

    def _answer_waiting(self) -> None:
        ready = [rank for rank, applied in self._waiting if applied <= self._applied]
        self._waiting = [(rank, applied) for rank, applied in self._waiting if applied > self._applied]
        if ready:
            state = self._optimizer.state()
            rows = np.stack([self._optimizer.weights(), *(state[name] for name in self._slots)])
            for rank in ready:
                self._mail.answers.send_array(rank, rows, STATE)


def mean_of(gradients: list[Pushed]) -> tuple[Array, float]:
    """Average clipped gradients by their samples; one alone stays as it is, and is still to be scaled."""
    if len(gradients) == 1:
        return gradients[0][0], gradients[0][1].scale
    total = np.sum([gradient * np.float32(note.scale * note.samples) for gradient, note in gradients], axis=0)
    return np.asarray(total / np.float32(sum(note.samples for _, note in gradients))), 1.0


def sharded(config: Comm, around: Surroundings) -> Asynchronous:
    """Make the strategy for slices with owners."""
    return Asynchronous(config, around, Slices)


def without_simulators(config: Comm, hosts: list[str]) -> tuple[int, ...]:
    """Name the ranks that only serve weights."""
    return owners(hosts, config.servers) if config.strategy == "server" and config.dedicated else ()


def owners(hosts: list[str], servers: int) -> tuple[int, ...]:
    """Choose the ranks that own slices: one of each host first, then the second ones, and so on."""
    place_on_host = [hosts[:rank].count(host) for rank, host in enumerate(hosts)]
    return tuple(sorted(range(len(hosts)), key=lambda rank: (place_on_host[rank], rank))[:servers])
