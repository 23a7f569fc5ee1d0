"""Who may update next, when the ranks do not wait for each other: a state machine without MPI.

The clerk decides once about each gradient, so that it is applied to all slices of the weights or to none. It numbers
the updates without gaps, refuses stale gradients, and calls all ranks to a meeting where they do something together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.types import Array, Clock, Update


class Header(NamedTuple):
    """What a rank tells the clerk about its gradient; the gradient itself goes to those who own the weights."""

    samples: int
    steps: int
    version: int  # number of the update whose weights it was computed with
    finite: bool
    stop: bool  # the rank was asked to stop
    sums: dict[str, float]
    by_rank: dict[str, float]


class Ticket(NamedTuple):
    """The clerk's answer to a header."""

    news: list[Update]  # since the last ticket of this rank
    applied: int  # optimizer steps so far
    clock: Clock  # before the update that the gradient belongs to; meaningless if it is not to be applied
    group: tuple[int, ...] = ()  # ranks whose gradients make one update together; nobody's if it was refused
    meet: bool = False  # take over the weights and slots of the update that the news end with, and say so


Answers = list[tuple[int, Ticket]]  # rank, ticket


class Clerk:
    def __init__(
        self,
        ranks: int,
        clock: Clock,
        applied: int,
        meets_after: Callable[[int], bool],
        aggregate: int = 1,
        max_staleness: int = 0,
    ) -> None:
        """`aggregate` gradients make an update; `max_staleness` 0 refuses none; `applied` optimizer steps were before.

        All ranks meet after each update for which `meets_after` is true, and where training may end.
        """
        self._ranks = ranks
        self._clock = clock
        self._applied = applied
        self._meets_after = meets_after
        self._aggregate = aggregate
        self._max_staleness = max_staleness
        self._group: list[tuple[int, Header]] = []
        self._queued: list[tuple[int, Header]] = []  # came from ranks that have left the meeting before others
        self._idle: set[int] = set()  # ranks without simulators that wait for news
        self._meeting = False
        self._arrived: set[int] = set()  # at the meeting
        self._stopping: set[int] = set()
        self._dropped = np.zeros(ranks)  # gradients that were refused since the last update
        self._log: list[Update] = []  # what some rank has not been told yet
        self._told = [clock.updates] * ranks

    def take(self, rank: int, header: Header) -> Answers:
        """Decide about a gradient; the answers may be those that other ranks have waited for."""
        if self._meeting and rank in self._arrived:
            self._queued.append((rank, header))
            return []
        if header.stop:
            self.stop(rank)
        if self._meeting or self._is_stale(header):
            return [(rank, self._refusal(rank))]
        if not header.finite or header.samples == 0:
            self._record([(rank, header)], skipped=not header.finite)
            return [(rank, self._ticket(rank)), *self._invitations()]
        self._group.append((rank, header))
        return self._grant() if len(self._group) == self._aggregate else []

    def stop(self, rank: int) -> Answers:
        """Take note that a rank was asked to stop: the next update is the last."""
        self._stopping.add(rank)
        return []

    def wait(self, rank: int) -> Answers:
        """Take note that a rank without simulators waits for news; it is answered at the next meeting or `tell`."""
        if self._meeting and rank not in self._arrived:
            return [(rank, self._ticket(rank))]
        self._idle.add(rank)
        return []

    def tell(self) -> Answers:
        """Answer the ranks without simulators that wait, if there are news: what they have not heard of is kept."""
        ranks = [rank for rank in sorted(self._idle) if self._told[rank] < self._clock.updates]
        self._idle.difference_update(ranks)
        return [(rank, self._ticket(rank)) for rank in ranks]

    def arrive(self, rank: int) -> Answers:
        """Take note that a rank has taken over what the meeting is about; the last one ends the meeting."""
        self._arrived.add(rank)
        if len(self._arrived) < self._ranks:
            return []
        self._meeting = False
        self._arrived.clear()
        queued, self._queued = self._queued, []
        return [answer for rank, header in queued for answer in self.take(rank, header)]

    def _is_stale(self, header: Header) -> bool:
        if self._aggregate > 1:
            return self._staleness(header) > 0
        return 0 < self._max_staleness < self._staleness(header)

    def _staleness(self, header: Header) -> float:
        """Count the updates between reading the weights and applying what was computed with them."""
        return float(self._clock.updates - header.version)

    def _grant(self) -> Answers:
        """Turn the gradients of the group into one update."""
        group, self._group = self._group, []
        before = self._clock
        self._applied += 1
        self._record(group, skipped=False)
        ranks = tuple(sorted(rank for rank, _ in group))
        granted = [(rank, self._ticket(rank)._replace(clock=before, group=ranks)) for rank in ranks]
        return granted + self._invitations()

    def _record(self, group: list[tuple[int, Header]], skipped: bool) -> None:
        """Number an update and write down what it did; open a meeting if one is due after it."""
        headers = [header for _, header in group]
        steps = 0 if skipped else sum(header.steps for header in headers)
        clock = self._clock._replace(updates=self._clock.updates + 1, steps=self._clock.steps + steps)
        ends = bool(self._stopping) or skipped or clock.steps >= clock.total_steps
        self._meeting = ends or self._meets_after(clock.updates)
        update = Update(
            number=clock.updates,
            samples=0 if skipped else sum(header.samples for header in headers),
            steps=steps,
            skipped=skipped,
            stop=bool(self._stopping),
            sums={name: sum(header.sums[name] for header in headers) for name in headers[0].sums}
            | {"staleness": sum(self._staleness(header) * header.samples for header in headers)},
            by_rank=self._by_rank(group),
            meeting=self._meeting,
        )
        self._clock = clock
        self._log.append(update)

    def _by_rank(self, group: list[tuple[int, Header]]) -> dict[str, Array]:
        figures = {name: np.zeros(self._ranks) for name in (*group[0][1].by_rank, "staleness", "not_finite")}
        for rank, header in group:
            mine = header.by_rank | {
                "staleness": self._staleness(header),
                "not_finite": float(not header.finite),
            }
            for name, value in mine.items():
                figures[name][rank] = value
        stop = np.isin(np.arange(self._ranks), list(self._stopping)).astype(float)
        late, self._dropped = self._dropped, np.zeros(self._ranks)
        return figures | {"stop": stop, "late": late}

    def _refusal(self, rank: int) -> Ticket:
        self._dropped[rank] += 1
        return self._ticket(rank)

    def _invitations(self) -> Answers:
        """Call those to the meeting who wait for an answer; the others are told when they come."""
        if not self._meeting:
            return []
        group, self._group = self._group, []
        idle, self._idle = self._idle, set()
        refused = [(rank, self._refusal(rank)) for rank, _ in group]
        return refused + [(rank, self._ticket(rank)) for rank in sorted(idle)]

    def _ticket(self, rank: int) -> Ticket:
        """Tell a rank what it has not been told yet."""
        news = [update for update in self._log if update.number > self._told[rank]]
        self._told[rank] = self._clock.updates
        known = min(self._told)
        self._log = [update for update in self._log if update.number > known]
        if rank > 0:  # only rank 0 reports them
            news = [update._replace(sums={}) for update in news]
        return Ticket(news, self._applied, self._clock, meet=self._meeting)
