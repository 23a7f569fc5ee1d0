"""An async actor over scripted games, and the learner that takes its batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from dba3c.actors.asynchronous import Async
from dba3c.config.schema import Config
from dba3c.timings import Timings
from dba3c.types import Array, Batch
from tests.fakes.scripted_env import ScriptedPolicy, TapeEnv
from tests.fakes.settings import settings as pinned
from tests.fakes.waiting import within

PATIENCE = 30.0  # seconds until a test takes the actor for stuck
Delay = Callable[[int], object]  # what the step of a group waits for


class Scene:
    def __init__(self, config: Config, delay: Delay = lambda _: None, policy: ScriptedPolicy | None = None) -> None:
        self.config, self.policy = config, policy or ScriptedPolicy()
        size = config.actor.group_size
        groups = range(config.env.n_sim // size)
        self.envs = [TapeEnv(size, group * size, delay=partial(delay, group)) for group in groups]
        self.actor = Async(config, list(self.envs), self.policy, 0, Timings())
        self.lags: list[Array] = []

    def learn(self, batches: int) -> list[Batch]:
        return [self.learn_one() for _ in range(batches)]

    def learn_one(self) -> Batch:
        batch = within(PATIENCE, lambda: next(self.actor))
        self.lags.append(self.policy.version - batch.versions)
        self.policy.version += 1
        return batch

    def played(self) -> int:
        return sum(env.steps * env.n_sim for env in self.envs)

    def settle(self) -> int:
        """Steps played when nothing moves any more."""
        start = since = time.monotonic()
        last = self.played()
        while time.monotonic() - since < 0.3:
            assert time.monotonic() - start < 10, f"nothing holds the simulators back: {last} steps"
            time.sleep(0.02)
            if self.played() != last:
                last, since = self.played(), time.monotonic()
        return last


@contextmanager
def playing(config: Config, delay: Delay = lambda _: None, policy: ScriptedPolicy | None = None) -> Iterator[Scene]:
    scene = Scene(config, delay, policy)
    try:
        scene.actor.restart(0)
        yield scene
    finally:
        within(PATIENCE, scene.actor.close)


def settings(n_sim: int, group_size: int, n_steps: int, batch_size: int, *more: str, queue_batches: int = 1) -> Config:
    return pinned(
        "actor.kind=async", f"env.n_sim={n_sim}", f"actor.group_size={group_size}", f"actor.n_steps={n_steps}",
        f"train.batch_size={batch_size}", f"actor.queue_batches={queue_batches}", *more,
    )  # fmt: skip
