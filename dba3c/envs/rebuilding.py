"""Simulators that may fail: a vector env that throws or does not come back is rebuilt, with new episodes."""

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

from dba3c.types import Array, Say, Step, VectorEnv

WAIT_SECONDS = 1.0  # waiting in pieces, a process that was stopped meanwhile does not count that time
MINUTE = 60.0


class SimulatorError(Exception):
    """The simulators failed too often."""


class EnvThread:
    """A thread that owns one vector env, and can be left alone with it if the env never comes back."""

    def __init__(self, make: Callable[[], VectorEnv]) -> None:
        self._make = make
        self._calls: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="simulators")
        self._thread.start()

    def call(self, seconds: float, method: str, *values: Any) -> Any:
        """Call a method of the env; TimeoutError if it takes longer than `seconds`."""
        self._calls.put((method, values))
        for _ in range(int(np.ceil(seconds / WAIT_SECONDS))):
            try:
                answer, error = self._answers.get(timeout=WAIT_SECONDS)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            return answer
        raise TimeoutError(f"no answer within {seconds:g} s")

    def abandon(self, seconds: float = 0.0) -> None:
        """Let the thread end when its call returns; wait for that for up to `seconds`."""
        self._calls.put(None)
        if self._thread is not threading.current_thread():  # which may be the one that collects the garbage
            self._thread.join(seconds)

    def _serve(self) -> None:
        env = None
        while (call := self._calls.get()) is not None:
            method, values = call
            try:
                env = env or self._make()
                answer = env if method == "env" else getattr(env, method)(*values)
            except Exception as error:
                self._answers.put((None, error))
            else:
                self._answers.put((answer, None))


class RebuildingEnv:
    """A vector env whose simulators are replaced, all that step together, when they fail; episodes are dropped."""

    def __init__(
        self,
        make: Callable[[], VectorEnv],
        seeds: Callable[[int], Array],
        step_seconds: float,
        rebuilds_per_minute: int,
        rebuilt: Say = lambda _: None,
    ) -> None:
        """`seeds` gives those of the episodes after the n-th failure; `rebuilt` is called with the reason."""
        self._make = make
        self._seeds = seeds
        self._rebuilt = rebuilt
        self._step_seconds = step_seconds
        self._most = rebuilds_per_minute
        self._failures: deque[float] = deque(maxlen=rebuilds_per_minute)
        self._count = 0
        self._thread = self._new_thread()
        env: VectorEnv = self._thread.call(step_seconds, "env")
        self.n_sim = env.n_sim
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, seeds: Array) -> Array:
        while True:
            try:
                return self._thread.call(self._step_seconds, "reset", seeds)  # type: ignore[no-any-return]
            except Exception as error:
                self._replace(error)

    def step(self, actions: Array) -> Step:
        try:
            return self._thread.call(self._step_seconds, "step", actions)  # type: ignore[no-any-return]
        except Exception as error:
            self._replace(error)
        nothing = np.zeros(self.n_sim)
        return Step(self.reset(self._seeds(self._count)), nothing, nothing > 0, nothing == 0, rebuilt=True)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # a simulator that cannot be closed must not cost what was learned
            self._thread.call(self._step_seconds, "close")
            self._thread.abandon(self._step_seconds)

    def _replace(self, error: Exception) -> None:
        """Rebuild the simulators; SimulatorError if that happens too often."""
        reason = f"{type(error).__name__}: {error}"
        now = time.monotonic()
        if len(self._failures) == self._most and now - self._failures[0] < MINUTE:
            raise SimulatorError(f"simulators failed {self._most + 1} times within a minute; the last: {reason}")
        self._failures.append(now)
        self._count += 1
        self._rebuilt(reason)
        self._thread.abandon()
        self._thread = self._new_thread()

    def _new_thread(self) -> EnvThread:
        thread = EnvThread(self._make)
        weakref.finalize(self, thread.abandon, WAIT_SECONDS)  # or it would hold the simulators for ever
        return thread
