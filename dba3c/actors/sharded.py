"""Shards: a rank's simulators divided among actors, each of which plays in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from dba3c.timings import Timings
from dba3c.types import Actor, Batch


class Sharded:
    """Plays as one actor, on as many cores as it has shards.

    The division into shards decides how predictions round; threads and cores do not change what is played.
    """

    def __init__(
        self, actors: Sequence[Actor], whole: Batch, timings: Timings, timings_of_actors: Sequence[Timings]
    ) -> None:
        """`whole` is the batch that the actors write into, side by side."""
        self._actors = actors
        self._whole = whole
        self._timings = timings
        self._timings_of_actors = timings_of_actors
        self._threads = ThreadPoolExecutor(len(actors), "shard")

    def restart(self, update: int) -> None:
        list(self._threads.map(lambda actor: actor.restart(update), self._actors))

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        batches = [batch for batch in self._threads.map(next, self._actors) if batch is not None]
        self._timings.add_mean(self._timings_of_actors)
        if len(batches) < len(self._actors):
            return None
        return self._whole._replace(episodes=[episode for batch in batches for episode in batch.episodes])

    def close(self) -> None:
        self._threads.shutdown()
        for actor in self._actors:
            actor.close()
