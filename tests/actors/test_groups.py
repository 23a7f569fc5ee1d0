"""Which groups of simulators may go on, which wait for the slowest, and which rest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from dba3c.actors.groups import Group, Pack


def pack(playing: int, *positions: int, skew: int = 3) -> tuple[Pack, list[Group]]:
    groups = [cast(Group, SimpleNamespace(position=position)) for position in positions]
    made = Pack(groups, skew)
    made.restart(playing)
    return made, groups


def test_a_group_that_is_too_far_ahead_is_held_until_the_slowest_has_moved() -> None:
    made, (slow, fast) = pack(2, 0, 3)
    assert made.released([fast]) == []
    slow.position = 1
    assert made.released([slow]) == [fast, slow]
    assert made.released([]) == []


def test_nobody_waits_for_a_group_that_rests() -> None:
    made, (slow, fast) = pack(2, 0, 3)
    assert made.released([fast]) == []
    assert made.rest(slow, 1)
    assert not made.rest(fast, 1)
    assert made.released([]) == [fast]


def test_who_comes_back_stands_with_the_slowest() -> None:
    made, (first, second, third) = pack(2, 7, 9, 0)
    assert made.woken(2) == []
    assert made.woken(3) == [third]
    assert third.position == 7
    assert made.playing == [first, second, third]
