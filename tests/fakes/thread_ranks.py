"""Ranks that are threads of this process: transports that gather over a board, and may lose some of their ranks."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from dba3c.types import Array

T = TypeVar("T")
RANKS_WAIT = 30.0  # seconds for each other


class Board:
    """Where the ranks of one communicator leave their values."""

    def __init__(self, size: int) -> None:
        self.values: list[Any] = [None] * size
        self.notes: list[queue.SimpleQueue[tuple[int, Any]]] = [queue.SimpleQueue() for _ in range(size)]
        self.barrier = threading.Barrier(size)


class ThreadRank:
    """One of several ranks; `survivors` are the ranks that are left after a shrink, and their board."""

    comm: Any = None  # these ranks have no MPI

    def __init__(self, rank: int, board: Board, survivors: tuple[list[int], Board] | None = None) -> None:
        self.rank = rank
        self.size = len(board.values)
        self._board = board
        self._survivors = survivors

    def sum(self, array: Array) -> None:
        array[...] = np.sum(self.gather(array.copy()), axis=0)

    def broadcast(self, value: T, root: int = 0) -> T:
        return self.gather(value)[root]

    def gather(self, value: T) -> list[T]:
        self._board.values[self.rank] = value
        self._board.barrier.wait(RANKS_WAIT)
        values = list(self._board.values)
        self._board.barrier.wait(RANKS_WAIT)
        return values

    def send(self, rank: int, note: object, _tag: int = 0) -> None:
        self._board.notes[rank].put((self.rank, note))

    def receive(self, _tag: int = 0) -> tuple[int, Any] | None:
        with contextlib.suppress(queue.Empty):
            return self._board.notes[self.rank].get_nowait()
        return None

    def duplicate(self) -> ThreadRank:
        return self

    def shrink(self) -> ThreadRank:
        assert self._survivors is not None
        ranks, board = self._survivors
        return ThreadRank(ranks.index(self.rank), board)


def on_ranks(size: int, work: Callable[[ThreadRank], T]) -> list[T]:
    """What `work` gives on each rank."""
    board = Board(size)
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: work(ThreadRank(rank, board)), range(size)))


def on_survivors(size: int, ranks: list[int], work: Callable[[ThreadRank], T]) -> list[T]:
    """What `work` gives on the ranks of a job of `size` that are still alive."""
    board, smaller = Board(size), Board(len(ranks))
    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(lambda rank: work(ThreadRank(rank, board, (ranks, smaller))), ranks))
