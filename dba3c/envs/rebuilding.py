"""Simulators that may fail: a vector env that throws or does not come back is built anew, with new games."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from dba3c.types import Array, Step, VectorEnv

GLANCE = 1.0  # seconds; waiting in pieces, a process that was stopped meanwhile does not count that time
MINUTE = 60.0


class SimulatorError(Exception):
    """The simulators failed too often."""


class Keeper:
    """A thread that owns one vector env, and can be left alone with it if the env never comes back."""

    def __init__(self, make: Callable[[], VectorEnv]) -> None:
        self._make = make
        self._orders: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="simulators")
        self._thread.start()

    def ask(self, seconds: float, method: str, *values: Any) -> Any:
        """Call a method of the env; TimeoutError if it takes longer than `seconds`."""
        self._orders.put((method, values))
        for _ in range(int(np.ceil(seconds / GLANCE))):
            try:
                answer, error = self._answers.get(timeout=GLANCE)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            return answer
        raise TimeoutError(f"no answer within {seconds:g} s")

    def dismiss(self, seconds: float = 0.0) -> None:
        """Let the thread end when it comes back, and wait so long for that."""
        self._orders.put(None)
        if self._thread is not threading.current_thread():  # which may be the one that collects the garbage
            self._thread.join(seconds)

    def _serve(self) -> None:
        env = None
        while (order := self._orders.get()) is not None:
            method, values = order
            try:
                env = env or self._make()
                answer = env if method == "env" else getattr(env, method)(*values)
            except Exception as error:
                self._answers.put((None, error))
            else:
                self._answers.put((answer, None))


class Guarded:
    """A vector env whose simulators are replaced, all that step together, when they fail; their games are dropped."""

    def __init__(
        self,
        make: Callable[[], VectorEnv],
        seeds: Callable[[int], Array],
        step_seconds: float,
        rebuilds_per_minute: int,
        rebuilt: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`seeds` are those of the games after the n-th failure; `rebuilt` is told why."""
        self._make, self._seeds, self._rebuilt = make, seeds, rebuilt
        self._step_seconds, self._most = step_seconds, rebuilds_per_minute
        self._failures: deque[float] = deque(maxlen=rebuilds_per_minute)
        self._count = 0
        self._keeper = self._new_keeper()
        env = self._keeper.ask(step_seconds, "env")
        self.n_sim: int = env.n_sim
        self.n_actions: int = env.n_actions
        self.observation_shape: tuple[int, int, int] = env.observation_shape

    def reset(self, seeds: Array) -> Array:
        while True:
            try:
                return self._keeper.ask(self._step_seconds, "reset", seeds)  # type: ignore[no-any-return]
            except Exception as error:
                self._replace(error)

    def step(self, actions: Array) -> Step:
        try:
            return self._keeper.ask(self._step_seconds, "step", actions)  # type: ignore[no-any-return]
        except Exception as error:
            self._replace(error)
        nothing = np.zeros(self.n_sim)
        return Step(self.reset(self._seeds(self._count)), nothing, nothing > 0, nothing == 0, lost=True)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # nobody needs them any more; what was learned must not be lost for that
            self._keeper.ask(self._step_seconds, "close")
            self._keeper.dismiss(self._step_seconds)

    def _replace(self, error: Exception) -> None:
        """New simulators for those that failed; SimulatorError if that happens too often."""
        reason = f"{type(error).__name__}: {error}"
        now = time.monotonic()
        if len(self._failures) == self._most and now - self._failures[0] < MINUTE:
            raise SimulatorError(f"simulators failed {self._most + 1} times within a minute; the last: {reason}")
        self._failures.append(now)
        self._count += 1
        self._rebuilt(reason)
        self._keeper.dismiss()
        self._keeper = self._new_keeper()

    def _new_keeper(self) -> Keeper:
        keeper = Keeper(self._make)
        weakref.finalize(self, keeper.dismiss, GLANCE)  # its thread would hold the simulators for ever
        return keeper
