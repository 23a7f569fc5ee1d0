"""The state of a run: in memory the same on every rank, on the disk written by one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from dba3c.config import consistency
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent
from dba3c.learning.optimizers import FlatOptimizer
from dba3c.run_files import checkpoint
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.types import Progress

PATIENCE = 5.0  # seconds that a save in a hurry waits for a whole update


class State:
    """Weights, optimizer and progress, and the checkpoints of them in the run directory."""

    def __init__(self, config: Config, agent: Agent, optimizer: FlatOptimizer, run_dir: Path) -> None:
        self._config, self._agent, self._optimizer = config, agent, optimizer
        self._run_dir, self._directory = run_dir, run_dir / "checkpoints"
        self.progress = Progress()
        self.before_saving: Callable[[int], None] = lambda _: None  # told the update
        self._saving = threading.Lock()

    def snapshot(self) -> Checkpoint:
        progress = asdict(self.progress)  # first: save_at_once relies on the order
        return Checkpoint(self._agent.weights.numpy(), self._optimizer.state(), progress, self._config)

    def restore(self, saved: Checkpoint) -> None:
        self._agent.load(saved.weights, saved.progress["updates"])
        self._optimizer.restore(saved.optimizer)
        self.progress = Progress(**saved.progress)

    def load(self, notes: list[str]) -> Checkpoint | None:
        """The newest good checkpoint, if there is one; `notes` gets what there is to say about it."""
        saved = checkpoint.load_newest(self._directory, notes.append)
        if saved is not None:
            changes = consistency.differences(saved.config, self._config)
            updates, steps = saved.progress["updates"], saved.progress["steps"]
            notes.append(f"resuming {self._run_dir} at update {updates:,}, step {steps:,}, with new games")
            notes += [f"changed since then: {change}" for change in changes]
        return saved

    def save(self) -> None:
        state = self.snapshot()
        with self._writing(state):
            checkpoint.save(self._directory, state, self._config.checkpoint.keep)

    def save_at_once(self) -> int:
        """From another thread than the one that learns: save the newest whole update; its number.

        It removes nothing: when ranks lose sight of each other, each may be the one that saves, in the same directory.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            state = self.snapshot()
            same = state.progress["updates"] == self.progress.updates
            if same and state.optimizer["steps"] + self.progress.skipped == self.progress.updates:
                break  # no update was being applied while the arrays were read
            if time.monotonic() > deadline:
                raise TimeoutError("an update is only half applied")
            time.sleep(0.001)
        with self._writing(state):
            checkpoint.add(self._directory, state)
        return int(state.progress["updates"])

    @contextmanager
    def _writing(self, state: Checkpoint) -> Iterator[None]:
        with self._saving:
            self.before_saving(state.progress["updates"])
            yield
