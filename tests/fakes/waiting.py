"""Waiting that fails a test instead of hanging it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """The result of `work`; fails instead of hanging."""
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="within")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    assert outcome, f"nothing happened within {seconds} s"
    return outcome[0]


def until(what: Callable[[], bool], seconds: float = 240.0, why: Callable[[], str] = lambda: "") -> None:
    """Look often until it is so; after the time is over the test fails and says why."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"nothing happens: {why()}"
        time.sleep(0.02)
