"""Consumers of the updates that the loop yields: weight check, evaluation, checkpoints, log.

Each has `due` and `after`. The ranks meet after every update for which some consumer is due, so `due` may depend on the
number of the update alone: every rank must know it beforehand.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Protocol

from dba3c import envs
from dba3c.config.schema import Config
from dba3c.job import handshake
from dba3c.job.process import terminal
from dba3c.job.signals import StopSignal
from dba3c.job.world import World, start_line
from dba3c.learning.agent import Agent
from dba3c.run_files import write_atomically
from dba3c.run_files.directory import RunDirectory
from dba3c.run_files.metrics import Metrics, NullMetrics, RunMetrics
from dba3c.run_files.progress import Callback
from dba3c.run_files.window import Pace, means
from dba3c.training import build
from dba3c.training.evaluation import cut_off, evaluate, in_a_row
from dba3c.training.ranks import Ranks
from dba3c.training.state import State, check_weights
from dba3c.types import Actor, Json, Update


class Consumer(Protocol):
    """Does something after updates."""

    def due(self, number: int) -> bool: ...
    def after(self, update: Update) -> None: ...


def every(count: int, number: int) -> bool:
    """Whether something that happens every `count` updates, or never if that is 0, happens after this one."""
    return count > 0 and number % count == 0


class Log:
    """Metrics, messages and pace; it concerns rank 0 alone, so the ranks need not meet for it."""

    def __init__(self, config: Config, run_dir: Path, state: State) -> None:
        self._config = config
        self._run_dir = run_dir
        self._state = state
        self._metrics: Metrics = NullMetrics()
        self._seconds_before: float | None = None  # this job

    def open(self, world: World, notes: list[str]) -> None:
        """Begin to log a job of these ranks."""
        self._world = world
        if self._seconds_before is None:
            self._seconds_before = self._state.progress.seconds
        self.pace = Pace()
        if world.rank > 0:
            self._metrics = NullMetrics()
            return
        self._write_config()
        frames, progress = envs.frames_per_step(self._config.env), self._state.progress
        self._metrics = RunMetrics(
            self._run_dir, self._config, progress, world.hosts, frames, terminal(), world.numbers
        )
        for note in handshake.layout(world.places, self._config.env.n_sim, world.numbers) + notes:
            self.say(note)

    def reopen(self) -> None:
        """Begin new files in place of those that were removed."""
        self._write_config()
        self._metrics.open_files(self._state.progress)

    def _write_config(self) -> None:
        with contextlib.suppress(OSError):  # a full disk is reported when it matters
            write_atomically(self._run_dir / "config.yaml", self._config.dump().encode())

    def due(self, number: int) -> bool:  # noqa: ARG002
        return False

    def after(self, update: Update) -> None:
        progress = self._state.progress
        self.pace.count(update, self._world.started)
        progress.seconds = (self._seconds_before or 0.0) + time.monotonic() - self._world.started
        self._metrics.update(update, progress)

    def evaluated(self) -> None:
        progress = self._state.progress
        games = f"mean of {progress.evaluation_games} {self._config.evaluation_episodes}"
        cut = cut_off(progress.evaluation_cut) + in_a_row(progress.reached_in_a_row, self._config.evaluate.in_a_row)
        self._metrics.evaluated(progress.evaluation_games, progress)
        self.say(f"evaluation after update {progress.updates:,}: {progress.evaluation_score:.1f}, {games}{cut}")

    def say(self, text: str) -> None:
        self._metrics.say(text)

    def phase(self, what: str) -> None:
        """Say what comes next while the job starts."""
        self.say(start_line(self._world.started, what))

    def close(self, summary: Json | None) -> None:
        self._metrics.close(summary)


class Ask:
    """Shows every update to a callback of the user, which may ask for the end of the training."""

    def __init__(self, callback: Callback | None, state: State, stop: StopSignal) -> None:
        self._callback = callback
        self._state = state
        self._stop = stop

    def after(self, update: Update) -> None:
        if self._callback is None:
            return
        if self._callback(self._state.progress, means(update.sums, update.samples)) is False:
            self._stop.request("the callback")


class CheckWeights:
    """Ends the job if the ranks' weights differ."""

    def __init__(self, config: Config, agent: Agent, ranks: Ranks) -> None:
        self._every = config.comm.check_every_updates
        self._agent = agent
        self._ranks = ranks

    def due(self, number: int) -> bool:
        return every(self._every, number)

    def after(self, update: Update) -> None:
        self.check(update.number)

    def check(self, number: int) -> None:
        check_weights(self._agent.weights.numpy(), self._ranks.transport, number, self._ranks.world.numbers)


class Evaluate:
    """Plays episodes with the newest weights."""

    def __init__(self, config: Config, agent: Agent, ranks: Ranks, state: State, log: Log) -> None:
        self._config = config
        self._agent = agent
        self._ranks = ranks
        self._state = state
        self._log = log
        self._full_at = -1  # the update after which all episodes were played, not only the probe

    def due(self, number: int) -> bool:
        return self._config.evaluate.games > 0 and every(self._config.evaluate.every_updates, number)

    def after(self, _update: Update) -> None:
        self._evaluate(self._config)

    def at_the_end(self) -> None:
        """Play all episodes, if that has not just been done."""
        if self._config.evaluate.games > 0 and self._full_at != self._state.progress.updates:
            self._evaluate(self._config.without_probe)

    @property
    def target_reached(self) -> bool:
        """Whether the newest weights have reached the target."""
        progress = self._state.progress
        return self._full_at == progress.updates and progress.target_reached

    def _evaluate(self, config: Config) -> None:
        make_env = build.evaluation_env(config, self._ranks.world.threads)
        with self._ranks.busy("evaluating"):
            result = evaluate(config, self._agent, make_env, self._ranks.transport)
        progress = self._state.progress
        progress.evaluated(
            result.mean, len(result.scores), result.full, config.target_score, result.cut, config.evaluate.in_a_row
        )
        progress.evaluation_scores = result.scores
        self._full_at = progress.updates if result.full else -1
        self._log.evaluated()
        self._keep_best()

    def _keep_best(self) -> None:
        """Keep the weights on rank 0 if none before them have played better, for dba3c export."""
        try:
            if self._ranks.first:
                with self._ranks.busy("saving", self._config.checkpoint.save_seconds):
                    self._state.save_best()
        except OSError as error:
            self._log.say(f"could not save the best weights: {error}; training continues")


class Save:
    """Writes checkpoints on rank 0, and starts new episodes with them if that was asked for."""

    def __init__(
        self, config: Config, ranks: Ranks, state: State, actor: Actor, log: Log, directory: RunDirectory
    ) -> None:
        self._config = config.checkpoint
        self._ranks = ranks
        self._state = state
        self._actor = actor
        self._log = log
        self._directory = directory
        self._saved = self._called = time.monotonic()

    def due(self, number: int) -> bool:
        return every(self._config.every_updates, number)

    def calls_meeting(self) -> bool:
        """Whether the ranks shall meet for a save that is overdue, where their weights differ; it is called once."""
        called = self._overdue(max(self._saved, self._called))
        self._called = time.monotonic() if called else self._called
        return called

    def after_any(self, update: Update) -> None:
        """Save on rank 0 if the last save was long ago and all ranks have its weights; they need not wait for that."""
        self._directory.look_now_and_then()
        equal = self._ranks.strategy.equal_weights or update.meeting
        if self._ranks.first and equal and self._overdue(self._saved):
            self.save()

    def _overdue(self, since: float) -> bool:
        limit = self._config.every_seconds
        return limit > 0 and not self._config.restart_games and time.monotonic() - since > limit

    def after(self, update: Update) -> None:
        self.save()
        if self._config.restart_games:
            self._actor.restart(update.number)

    def save(self) -> bool:
        """Save on rank 0; a full disk does not end the training."""
        self._saved = time.monotonic()
        self._directory.look()
        if self._directory.taken:
            return False
        try:
            if self._ranks.first:
                with self._ranks.busy("saving", self._config.save_seconds):
                    self._state.save()
        except OSError as error:
            updates = self._state.progress.updates
            self._log.say(f"could not save update {updates:,}: {error}; training continues, older checkpoints are kept")
            return False
        return True
