"""What is broken on purpose: faults (DBA3C_FAULT), stragglers (debug.slow_rank, debug.delays), debug.staleness.

DBA3C_FAULT=RANK:UPDATE:KIND, several with commas: 2:17:kill kills rank 2 in update 17; 2:17+:nan spoils every gradient
of rank 2 from update 17 on.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dba3c.config.messages import ConfigError, cut, suggest
from dba3c.config.schema import Debug
from dba3c.timings import Timings
from dba3c.types import Array, Batch, Gradient, Step, VectorEnv

if TYPE_CHECKING:  # needs TensorFlow
    from dba3c.learning.agent import Agent
    from dba3c.training.loop import Learner

VARIABLE = "DBA3C_FAULT"
SLOW_SECONDS = 5.0
COMPUTING = ("env", "predict", "gradient")  # parts that a straggler takes longer for
KINDS = {
    "exception": "the learner raises an exception",
    "thread": "a thread in the background raises one",
    "kill": "SIGKILL",
    "stop": "SIGSTOP, for ever",
    "slow": f"computes {SLOW_SECONDS:.0f} s longer",
    "hang": "computes for ever",
    "nan": "a gradient that is not finite",
    "drift": "one weight moves away",
    "disk-full": "no save succeeds (on rank 0, which saves)",
    "sim-crash": "the simulators raise an exception",
    "sim-hang": "the simulators do not come back",
}


class Fault(NamedTuple):
    rank: int
    first: int  # update
    for_ever: bool
    kind: str


class InjectedError(Exception):
    """A fault that DBA3C_FAULT asked for."""


def planned(text: str) -> list[Fault]:
    """The faults that DBA3C_FAULT describes; ConfigError if it cannot be understood."""
    return [parse(part.strip()) for part in text.split(",") if part.strip()]


def parse(text: str) -> Fault:
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})(\+?):(.+)", text)
    if not match:
        raise ConfigError(f"{VARIABLE}={cut(text)}: write RANK:UPDATE:KIND, as in 2:17:kill")
    if match[4] not in KINDS:
        near = suggest(match[4], KINDS) or f"; there are {', '.join(KINDS)}"
        raise ConfigError(f"{VARIABLE}={cut(text)}: no such kind of fault{near}")
    return Fault(int(match[1]), int(match[2]), bool(match[3]), match[4])


class Faults:
    """Those of one rank; each strikes once, unless it is for ever."""

    def __init__(self, plan: list[Fault], rank: int) -> None:
        self._plan = [fault for fault in plan if fault.rank == rank]

    def __bool__(self) -> bool:
        return bool(self._plan)

    def strikes(self, kind: str, update: int) -> bool:
        """Whether a fault of this kind is due now."""
        for fault in self._plan:
            if fault.kind == kind and fault.first <= update:
                if not fault.for_ever:
                    self._plan.remove(fault)
                return True
        return False

    def refuse_to_save(self, update: int) -> None:
        if self.strikes("disk-full", update):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class StaleLearner:
    """Hands out each gradient `staleness` gradients later: as that many more equally fast workers would cause it."""

    def __init__(self, learner: Learner, staleness: int) -> None:
        self._learner = learner
        self._staleness = staleness
        self._waiting: deque[Gradient] = deque()

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        for gradient in self._learner.gradients(batch):
            self._waiting.append(gradient)
            if len(self._waiting) > self._staleness:
                yield self._waiting.popleft()


class FaultyLearner:
    """Strikes when this rank has computed a gradient."""

    def __init__(self, agent: Agent, learner: Learner, faults: Faults) -> None:
        self._agent = agent
        self._learner = learner
        self._faults = faults

    def gradients(self, batch: Batch) -> Iterator[Gradient]:
        for gradient in self._learner.gradients(batch):
            for kind, strike in self._strikes().items():
                if self._faults.strikes(kind, self._agent.version + 1):
                    strike()
            spoiled = self._faults.strikes("nan", self._agent.version + 1)
            yield gradient._replace(mean=gradient.mean * float("nan")) if spoiled else gradient

    def _strikes(self) -> dict[str, Callable[[], object]]:
        return {
            "exception": throw,
            "thread": lambda: threading.Thread(target=throw).start(),
            "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
            "slow": lambda: time.sleep(SLOW_SECONDS),
            "hang": hang,
            "drift": lambda: self._agent.weights.assign_add(self._agent.weights * 1e-3),
        }


class FaultyEnv:
    """Strikes when simulators step."""

    def __init__(self, inner: VectorEnv, faults: Faults, version: Callable[[], int]) -> None:
        self._inner = inner
        self._faults = faults
        self._version = version
        self.n_sim = inner.n_sim
        self.observation_space = inner.observation_space
        self.action_space = inner.action_space

    def reset(self, seeds: Array) -> Array:
        return self._inner.reset(seeds)

    def step(self, actions: Array) -> Step:
        update = self._version() + 1
        if self._faults.strikes("sim-crash", update):
            throw()
        if self._faults.strikes("sim-hang", update):
            hang()
        return self._inner.step(actions)

    def close(self) -> None:
        self._inner.close()


def throw() -> None:
    raise InjectedError(f"asked for by {VARIABLE}={os.environ.get(VARIABLE)}")


def hang() -> None:
    threading.Event().wait()


def pair(text: str) -> tuple[float, float] | None:
    """Read `3,2.5` as two numbers; None for `none`."""
    first, comma, second = text.partition(",")
    return (float(first), float(second)) if comma else None


def timings(config: Debug, rank: int) -> Timings:
    """Make the timings of a rank, which slow it down if it is to be a straggler."""
    slow, delays = pair(config.slow_rank), pair(config.delays)
    factor = slow[1] if slow is not None and slow[0] == rank else 1.0
    return Timings() if factor == 1.0 and delays is None else Timings(Straggler(factor, delays or (0.0, 1.0), rank))


class Straggler:
    """Sleeps after each piece of computing until it has taken as long as it should."""

    def __init__(self, factor: float, delays: tuple[float, float], rank: int) -> None:
        self._factor = factor
        self._probability, self._delay = delays
        self._random = np.random.default_rng(rank)

    def __call__(self, part: str, seconds: float) -> None:
        if part in COMPUTING:
            time.sleep((self.draw_factor(part) - 1) * seconds)

    def draw_factor(self, part: str) -> float:
        late = part == "env" and self._random.random() < self._probability
        return max(1.0, self._factor * (self._delay if late else 1.0))


def learner(agent: Agent, learner: Learner, faults: Faults, staleness: int) -> Learner:
    """Wrap what computes the gradients of an agent in what goes wrong on purpose."""
    faulty = FaultyLearner(agent, learner, faults) if faults else learner
    return StaleLearner(faulty, staleness) if staleness else faulty
