"""Signals that ask a job to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


class StopSignal:
    """Notes that this rank was asked to stop; a second signal, a second later or more, leaves at once.

    `at_once` gets its number in a thread of its own as soon as a signal arrives, even while the main thread is inside a
    library: mpirun kills its ranks a quarter of a second after it passed on Ctrl-C.
    """

    def __init__(self, at_once: Callable[[int], None] | None = None) -> None:
        self._received: float | None = None
        self.by = "a signal"  # who has asked
        self._wakeup_before = -1
        if at_once is not None:
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            self._wakeup_before = signal.set_wakeup_fd(writer)
            threading.Thread(target=self._watch, args=(reader, at_once), daemon=True, name="signals").start()
        self._handlers_before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        for number, handler in self._handlers_before.items():
            if handler is not signal.SIG_IGN:  # nohup ignores SIGHUP, and means it
                signal.signal(number, self._receive)

    def requested(self) -> bool:
        return self._received is not None

    def request(self, by: str) -> None:
        """Ask this rank to stop from within the program."""
        self._received = self._received or time.monotonic()
        self.by = by

    def close(self) -> None:
        """Handle signals as before."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._received is not None and now - self._received > 1:
            os._exit(128 + number)
        self._received = self._received or now

    def _watch(self, reader: int, at_once: Callable[[int], None]) -> None:
        while (number := os.read(reader, 1)[0]) not in STOP_SIGNALS:
            pass
        at_once(number)
