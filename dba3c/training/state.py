"""The state of a run: in memory the same on every rank, on the disk written by one of them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dba3c.config import comparison
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent
from dba3c.learning.optimizers import FlatOptimizer
from dba3c.run_files import checkpoint, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.progress import Progress, read_progress
from dba3c.types import Array, Transport

PATIENCE = 5.0  # seconds that an emergency save waits for a whole update


class State:
    """Weights, optimizer, algorithm and progress, and the checkpoints of them in the run directory."""

    def __init__(self, config: Config, agent: Agent, optimizer: FlatOptimizer, run_dir: Path) -> None:
        self._config = config
        self._agent = agent
        self._optimizer = optimizer
        self.run_dir = run_dir
        self._directory = run_dir / "checkpoints"
        self.before_saving: list[Callable[[int], None]] = []  # get the update that is about to be saved
        self._saving = threading.Lock()
        self.progress = Progress()
        self._meeting: Checkpoint | None = None

    def keep_meeting(self) -> None:
        """Keep the state in which all ranks are now: where weights differ in between, it is what they can return to."""
        self._meeting = self.snapshot()

    def return_to_meeting(self) -> None:
        assert self._meeting is not None
        self.restore(self._meeting)

    def snapshot(self) -> Checkpoint:
        # Progress first, optimizer last: save_now relies on the order.
        progress = asdict(self.progress)
        algorithm, statistics = self._agent.algorithm.state(), self._agent.normaliser.state()
        weights = self._agent.weights.numpy()
        return Checkpoint(weights, self._optimizer.state(), progress, self._config, algorithm, statistics)

    def restore(self, saved: Checkpoint) -> None:
        self.progress = read_progress(saved.progress)
        self._agent.load(saved.weights, self.progress.clock(self._config.train.total_steps))
        self._agent.algorithm.restore(saved.algorithm)
        self._agent.normaliser.restore(saved.statistics)
        self._optimizer.restore(saved.optimizer)

    def load(self, notes: list[str]) -> Checkpoint | None:
        """Load the newest good checkpoint, if there is one; `notes` gets the messages about it."""
        saved = checkpoint.load_newest(self._directory, notes.append, like=self.snapshot())
        if saved is not None:
            changes = comparison.differences(saved.config, self._config)
            updates, steps = saved.progress["updates"], saved.progress["steps"]
            notes.append(f"resuming {self.run_dir} at update {updates:,}, step {steps:,}, with new episodes")
            notes += [f"changed since then: {change}" for change in changes]
        return saved

    def save(self) -> None:
        state = self.snapshot()
        with self._writing(state):
            checkpoint.save(self._directory, state, self._config.checkpoint.keep)

    def save_best(self) -> None:
        """Save the weights that were evaluated last, unless earlier ones of this run have played better."""
        state = self.snapshot()
        best = trained_agents.load_best(self._directory, lambda _: None)  # a damaged one is replaced
        if best is None or best.progress["evaluation_score"] <= state.progress["evaluation_score"]:
            with self._writing(state):
                trained_agents.save_best(self._directory, state)

    def save_now(self, equal_weights: bool) -> str:
        """Save from another thread than the one that learns; return what became of it."""
        if self._config.checkpoint.restart_games or not equal_weights:
            # Episodes restart at regular saves only; without equal weights only a meeting has a state to save.
            return "the last regular save counts"
        try:
            return f"saved update {self._save_whole_update():,}"
        except OSError as error:
            return f"could not save: {error}"

    def _save_whole_update(self) -> int:
        """Save the newest update that was not being applied while the arrays were read; return its number.

        Nothing is removed: when ranks lose contact with each other, several may save in the same directory.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            state = self.snapshot()
            before, now = state.progress, self.progress
            applied = now.updates - now.skipped - now.empty
            if before["updates"] == now.updates and state.optimizer["steps"] == applied:
                break
            if time.monotonic() > deadline:
                raise TimeoutError("an update is only half applied")
            time.sleep(0.001)
        with self._writing(state):
            checkpoint.add(self._directory, state)
        return int(state.progress["updates"])

    @contextmanager
    def _writing(self, state: Checkpoint) -> Iterator[None]:
        with self._saving:
            for check in self.before_saving:
                check(state.progress["updates"])
            yield


class WeightsDifferError(Exception):
    """The ranks' weights differ; the message says whose."""


def weight_hash(vector: Array) -> str:
    """16 hex digits that change with any bit of the weights."""
    return hashlib.sha256(np.ascontiguousarray(vector, np.float32).tobytes()).hexdigest()[:16]


def check_weights(weights: Array, transport: Transport, update: int, numbers: Sequence[int] = ()) -> None:
    """Raise WeightsDifferError if the ranks' weights differ, naming the ranks that differ from the majority.

    `numbers` are the ranks' numbers when the job started, if others have failed since.
    """
    hashes = transport.gather(weight_hash(weights))
    majority = Counter(hashes).most_common(1)[0][0]
    different = [rank for rank, value in zip(numbers or range(len(hashes)), hashes, strict=True) if value != majority]
    if different:
        raise WeightsDifferError(
            f"after update {update} the weights of ranks {different} differ from the others': {hashes}"
        )
