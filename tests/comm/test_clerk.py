"""The clerk of asynchronous training: numbers, staleness, meetings, whatever the order in which ranks come.

In 10,000 orders: make crafted
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dba3c.comm.clerk import Answers, Clerk, Header, Ticket
from dba3c.types import Clock

NEVER = 10**9
ORDERS = 10_000 if os.environ.get("CRAFTED") == "all" else 300


def header(version: int, samples: int = 4, **changes: object) -> Header:
    made = Header(samples, samples, version, True, False, {"score": 1.0}, {"max_lag": 0.0, "compute_seconds": 0.1})
    return made._replace(**changes)  # type: ignore[arg-type]


def clerk(ranks: int, every: int = NEVER, total_steps: int = NEVER, **rules: int) -> Clerk:
    return Clerk(ranks, Clock(0, 0, total_steps), 0, lambda number: number % every == 0, **rules)


def only(answers: Answers) -> Ticket:
    assert len(answers) == 1
    return answers[0][1]


def test_a_gradient_gets_the_next_number_and_everyone_hears_of_it() -> None:
    desk = clerk(2)
    first = only(desk.take(1, header(0)))
    assert first.group == (1,)
    assert first.clock == Clock(0, 0, NEVER)
    assert [update.number for update in first.news] == [1]
    second = only(desk.take(0, header(0)))
    assert second.clock == Clock(1, 4, NEVER)
    assert [update.number for update in second.news] == [1, 2]
    assert second.applied == 2
    assert second.news[1].by_rank["staleness"].tolist() == [1.0, 0.0]
    assert second.news[1].sums == {"score": 1.0, "staleness": 4.0}


def test_a_gradient_that_is_too_stale_is_refused_and_counted() -> None:
    desk = clerk(2, max_staleness=2)
    for version in range(3):
        desk.take(0, header(version))
    refused = only(desk.take(1, header(0)))
    assert refused.group == ()
    assert refused.news[-1].number == 3
    late = only(desk.take(1, header(3))).news[-1].by_rank["late"]
    assert late.tolist() == [0.0, 1.0]


def test_a_staleness_at_the_limit_is_accepted() -> None:
    desk = clerk(2, max_staleness=2)
    for version in range(2):
        desk.take(0, header(version))
    assert only(desk.take(1, header(0))).group == (1,)


def test_a_gradient_that_is_not_finite_is_skipped_and_calls_a_meeting() -> None:
    """Training may end there, and it must end on all ranks."""
    desk = clerk(2)
    ticket = only(desk.take(1, header(0, samples=0, finite=False)))
    assert ticket.meet
    assert ticket.applied == 0
    assert ticket.news[0].skipped
    assert ticket.news[0].by_rank["not_finite"].tolist() == [0.0, 1.0]
    assert only(desk.take(0, header(0))).meet


def test_play_without_samples_changes_no_weights() -> None:
    ticket = only(clerk(1).take(0, header(0, samples=0, steps=7)))
    assert ticket.group == ()
    assert ticket.applied == 0
    assert not ticket.news[0].applied
    assert ticket.news[0].steps == 7


def test_gradients_of_a_group_become_one_update() -> None:
    desk = clerk(3, aggregate=2)
    assert desk.take(2, header(0)) == []
    answers = desk.take(0, header(0, samples=6))
    assert [rank for rank, _ in answers] == [0, 2]
    assert all(ticket.group == (0, 2) and ticket.applied == 1 for _, ticket in answers)
    assert answers[0][1].news[0].samples == 10
    assert only(desk.take(1, header(0))).group == ()  # for weights that are gone
    assert desk.take(1, header(1)) == []


def test_who_waits_in_a_group_is_called_to_a_meeting() -> None:
    desk = clerk(2, aggregate=2)
    desk.take(0, header(0))
    answers = dict(desk.take(1, header(0, samples=0, finite=False)))
    assert answers.keys() == {0, 1}
    assert all(ticket.meet and ticket.group == () for ticket in answers.values())


def test_a_stop_ends_with_the_next_update_on_all_ranks() -> None:
    desk = clerk(2)
    desk.wait(1)
    desk.stop(1)
    answers = dict(desk.take(0, header(0)))
    assert answers[0].news[-1].stop
    assert answers[1].meet
    assert answers[1].news[-1].by_rank["stop"].tolist() == [0.0, 1.0]


def test_ranks_without_simulators_hear_news_when_they_are_told() -> None:
    desk = clerk(3)
    desk.wait(0)
    desk.wait(2)
    assert desk.tell() == []
    desk.take(1, header(0))
    told = dict(desk.tell())
    assert told.keys() == {0, 2}
    assert all([update.number for update in ticket.news] == [1] for ticket in told.values())
    assert desk.tell() == []


def test_the_update_that_ends_with_a_meeting_says_so() -> None:
    desk = clerk(1, every=3)
    assert [only(desk.take(0, header(0))).news[-1].meeting for _ in range(3)] == [False, False, True]


def test_nobody_is_granted_before_all_have_left_a_meeting() -> None:
    desk = clerk(2, every=1)
    assert only(desk.take(0, header(0))).meet
    assert desk.arrive(0) == []
    assert desk.take(0, header(1)) == []  # rank 1 has still to take over the state of update 1
    assert only(desk.take(1, header(0))).meet
    granted = only(desk.arrive(1))
    assert granted.group == (0,)
    assert granted.clock.updates == 1


class Job:
    """Ranks that come to a clerk in any order, and owners that apply what was granted in any order."""

    def __init__(self, ranks: int, idle: int, owners: int, desk: Clerk) -> None:
        self.clerk = desk
        self.players = set(range(idle, ranks))
        self.version = [0] * ranks
        self.numbers: list[list[int]] = [[] for _ in range(ranks)]
        self.met: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
        self.waiting: set[int] = set()
        self.leaving: set[int] = set()  # have a ticket to a meeting
        self.pushed: list[list[tuple[int, ...]]] = [[] for _ in range(owners)]  # per owner, still under way
        self.applied: list[list[tuple[int, ...]]] = [[] for _ in range(owners)]
        self.ended: set[int] = set()
        self.staleness: list[int] = []  # of each gradient that was applied

    def answer(self, answers: Answers) -> None:
        for rank, ticket in answers:
            assert rank in self.waiting
            self.waiting.discard(rank)
            assert ticket.news
            self.numbers[rank] += [update.number for update in ticket.news]
            if rank in ticket.group:
                self.staleness.append(ticket.clock.updates - self.version[rank])
            self.version[rank] = ticket.news[-1].number
            if rank in ticket.group:
                for queue in self.pushed:
                    queue.append((ticket.clock.updates + 1, rank))
            if ticket.meet:
                self.met[rank].append((self.version[rank], ticket.applied))
                self.leaving.add(rank)
            if ticket.news[-1].stop:
                self.ended.add(rank)

    def come(self, rank: int, stop: bool, finite: bool) -> None:
        """Do the next thing of a rank, if it can do something."""
        if rank in self.leaving:
            self.leaving.discard(rank)
            self.answer(self.clerk.arrive(rank))
        elif rank in self.waiting or rank in self.ended:
            return
        elif rank in self.players:
            self.waiting.add(rank)
            mine = header(self.version[rank], samples=4 if finite else 0, finite=finite, stop=stop)
            self.answer(self.clerk.take(rank, mine))
        else:
            self.waiting.add(rank)
            self.answer(self.clerk.wait(rank))

    def deliver(self, owner: int, place: int) -> None:
        if place == 5:
            self.answer(self.clerk.tell())
        queue = self.pushed[owner]
        if queue:
            self.applied[owner].append(queue.pop(place % len(queue)))


@settings(max_examples=ORDERS, deadline=None)
@given(data=st.data())
def test_any_order_of_messages(data: st.DataObject) -> None:
    """Numbers have no gaps, nothing is applied twice or in part, nothing is staler than allowed, meetings are equal."""
    ranks = data.draw(st.integers(1, 5))
    idle = data.draw(st.integers(0, ranks - 1))
    aggregate = data.draw(st.integers(1, ranks - idle))
    limit = data.draw(st.integers(0, 4))
    rules = {"aggregate": aggregate, "max_staleness": limit}
    desk = clerk(ranks, every=data.draw(st.integers(1, 7)), **rules)
    job = Job(ranks, idle, 2, desk)
    orders = st.tuples(st.integers(0, ranks - 1), st.sampled_from([True] * 9 + [False]), st.integers(0, 5))
    for rank, finite, place in data.draw(st.lists(orders, min_size=5, max_size=60)):
        job.come(rank, False, finite)
        job.deliver(place % 2, place)
    for turn in range(40 * ranks):
        job.come(turn % ranks, True, True)
        job.deliver(turn % 2, 0)
    assert job.ended == set(range(ranks)), "every rank has come to the end"
    for owner in range(2):
        while job.pushed[owner]:
            job.deliver(owner, 0)
    last = max(job.version)
    assert all(numbers == list(range(1, last + 1)) for numbers in job.numbers)
    assert all(met == job.met[0] for met in job.met)
    assert sorted(job.applied[0]) == sorted(job.applied[1])
    assert len(set(job.applied[0])) == len(job.applied[0])
    by_number = np.bincount([number for number, _ in job.applied[0]], minlength=last + 1)
    assert set(by_number) <= {0, aggregate}
    allowed = 0 if aggregate > 1 else limit or NEVER
    assert max(job.staleness, default=0) <= allowed


def test_staleness_stays_within_the_limit_in_any_order() -> None:
    rng = np.random.default_rng(0)
    desk = clerk(4, max_staleness=3)
    version = [0] * 4
    largest = 0.0
    for rank in rng.integers(0, 4, 5000):
        if rng.random() < 0.5 or rank > 0:
            ticket = only(desk.take(int(rank), header(version[rank])))
            largest = max(largest, *(update.by_rank["staleness"].max() for update in ticket.news))
            version[rank] = ticket.news[-1].number
    assert largest == pytest.approx(3.0)
