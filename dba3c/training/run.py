"""One training run: the parts, the loop, and its consumers (metrics, evaluation, checkpoints)."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dba3c.comm.mpi import RanksLostError
from dba3c.comm.weight_check import check_weights
from dba3c.config.schema import Config
from dba3c.job import handshake
from dba3c.job.exit import EXIT_LOST, EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_OK, EXIT_STOPPED, abort, agreed, leave
from dba3c.job.process import terminal
from dba3c.job.signals import StopSignal
from dba3c.job.world import World
from dba3c.run_files import directory, write_atomically
from dba3c.run_files.metrics import Metrics, NullMetrics, RunMetrics
from dba3c.run_files.window import Pace
from dba3c.training import build, outcome
from dba3c.training.evaluation import evaluate
from dba3c.training.injected import Faults, timings
from dba3c.training.loop import train
from dba3c.training.ranks import Crew
from dba3c.training.state import State
from dba3c.types import Progress, Update


class Run:
    """A run directory and everything that works on it."""

    def __init__(self, world: World, config: Config, run_dir: Path, faults: Faults) -> None:
        self._config, self._run_dir = config, run_dir
        self._timings = timings(config.debug, world.rank)
        self._crew = Crew(world, config, faults)
        self._agent = build.agent(config)
        self._optimizer = build.optimizer(config, self._agent)
        self._state = State(config, self._agent, self._optimizer, run_dir)
        self._state.before_saving = faults.refuse_to_save
        notes = self._resume()
        self._seconds_before, self._evaluated_at = self._progress.seconds, -1  # at which update all games were played
        self._last: Update | None = None
        self._work_together(notes)
        self._player = build.player(
            config, self._agent, world.rank, world.threads, self._timings, faults, self._say_here
        )
        self._stop = StopSignal(self._asked_to_stop)

    @property
    def _progress(self) -> Progress:
        return self._state.progress

    @property
    def _first(self) -> bool:
        """This is the rank that writes."""
        return self._crew.world.rank == 0

    def train(self) -> int:
        """Train until the steps are done, the target is reached or somebody stops it; the exit code."""
        try:
            if self._progress.target_reached or self._progress.steps >= self._config.train.total_steps:
                told = self._crew.transport.broadcast(self._first and outcome.was_told(self._run_dir, self._progress))
                return self._nothing_to_do() if told else self._end(EXIT_OK)
            self._player.restart(self._progress.updates)
            while True:
                try:
                    return self._end(self._learn())
                except RanksLostError:
                    if self._config.comm.on_failure == "abort":
                        raise
                    self._go_on_without_the_dead()
        except Exception as error:
            error.add_note(f"after update {self._progress.updates:,}")
            raise

    def _nothing_to_do(self) -> int:
        self._metrics.say(f"nothing to do: {self._last_words(EXIT_OK)}")
        self._metrics.close(None)
        self._player.close()
        self._crew.rest()
        return EXIT_OK

    def _work_together(self, notes: list[str]) -> None:
        """With the ranks that there are now."""
        self._pace = Pace()
        self._metrics = self._make_metrics(notes)

        def communicator(transport: Any) -> Any:
            return build.communicator(
                self._config, transport, self._agent, self._optimizer, self._timings, self._progress, self._together
            )

        self._crew.work(communicator, self._agent, self._end_without, self._metrics.say)

    def _go_on_without_the_dead(self) -> None:
        self._metrics.close(None)
        was_first = self._first
        obituary = self._crew.bury_the_dead(self._state)
        if self._first and not was_first:
            self._lock = directory.prepare_directory(self._run_dir)  # that of the dead rank is gone
        self._work_together([obituary])

    def _learn(self) -> int:
        self._pace.resume()
        steps = self._config.train.total_steps
        for update in train(
            self._player, self._agent, self._crew.communicator, self._progress, steps, self._stop, self._timings
        ):
            self._last = update
            code = self._consume(update)
            if code != EXIT_OK or self._target_reached():
                return code
            self._pace.resume()
        return EXIT_OK

    def _consume(self, update: Update) -> int:
        """Everything that happens between two updates; the exit code if this was the last one."""
        config, number = self._config, update.number
        self._pace.count(update, self._crew.world.started)
        self._progress.seconds = self._seconds_before + time.monotonic() - self._crew.world.started
        self._metrics.update(update, self._progress)
        if update.stop:
            return EXIT_STOPPED
        if self._progress.bad_in_a_row >= config.train.max_bad_updates:
            return EXIT_NOT_FINITE
        if due(config.comm.check_every_updates, number):
            check_weights(self._agent.weights.numpy(), self._crew.transport, number)
        if config.evaluate.games and due(config.evaluate.every_updates, number):
            self._evaluate(config)
        if due(config.checkpoint.every_updates, number):
            self._save()
            if config.checkpoint.restart_games:
                self._player.restart(number)
        return EXIT_OK

    def _together(self, number: int) -> bool:
        """After update `number` the ranks, or rank 0, do something with its weights."""
        config = self._config
        regular = (config.comm.check_every_updates, config.evaluate.every_updates, config.checkpoint.every_updates)
        return any(due(every, number) for every in regular)

    def _target_reached(self) -> bool:
        return self._evaluated_at == self._progress.updates and self._progress.target_reached

    def _evaluate(self, config: Config) -> None:
        make_env = build.evaluation_env(config, self._crew.world.threads)
        with self._crew.elsewhere():
            result = evaluate(config, self._agent, make_env, self._crew.transport)
        self._progress.evaluated(result.mean, result.full, config.target_score)
        self._evaluated_at = self._progress.updates if result.full else -1
        self._metrics.evaluated(len(result.scores), self._progress)
        games = f"mean of {len(result.scores)} greedy games"
        self._metrics.say(f"evaluation after update {self._progress.updates:,}: {result.mean:.1f}, {games}")

    def _end(self, code: int) -> int:
        """Final evaluation, save and summary; the exit code."""
        if code == EXIT_OK and self._config.evaluate.games and self._evaluated_at != self._progress.updates:
            self._evaluate(self._config.without_probe)
        with self._crew.elsewhere():
            check_weights(self._agent.weights.numpy(), self._crew.transport, self._progress.updates)
            kept_exact = code == EXIT_STOPPED and self._config.checkpoint.restart_games
            # Games restart at regular saves only, or the resumed run would differ from an unbroken one.
            saved = kept_exact or self._crew.transport.broadcast(self._save())
            figures = self._pace.figures(self._crew.world.size)
            summary = outcome.summary(self._config, self._progress, self._crew, self._agent) | figures
        self._crew.rest()
        self._player.close()
        code = code if saved else EXIT_NOT_SAVED
        self._metrics.say(self._last_words(code))
        self._metrics.close(summary)
        if self._crew.lost:
            leave(self._crew.world.comm, code)
        return code

    def _last_words(self, code: int) -> str:
        culprits = {"stop": self._who("stop"), "not_finite": self._who("not_finite"), "save": self._crew.names([0])}
        return outcome.last_words(code, self._config, self._progress, self._run_dir, culprits)

    def _who(self, figure: str) -> str:
        """The ranks of which the last update said that."""
        return self._crew.names(np.flatnonzero(self._last.by_rank[figure])) if self._last else ""

    def _resume(self) -> list[str]:
        """Rank 0's newest checkpoint, or its first weights, on every rank; what there is to say about it."""
        notes, transport = list[str](), self._crew.transport
        saved = agreed(self._crew.world, lambda: self._state.load(notes) if self._first else None)
        saved = transport.broadcast(saved)
        if saved is None:
            self._agent.load(transport.broadcast(self._agent.weights.numpy()), 0)
            return notes
        self._state.restore(saved)
        self._progress.bad_in_a_row = 0
        if self._progress.evaluation_score is not None:  # the target may be another one now
            full = self._progress.target_reached
            self._progress.evaluated(self._progress.evaluation_score, full, self._config.target_score)
        return notes

    def _save(self) -> bool:
        """Save on rank 0; a disk that is full does not end the training."""
        try:
            if self._first:
                self._state.save()
        except OSError as error:
            self._metrics.say(f"could not save update {self._progress.updates:,}: {error}; older ones are kept")
            return False
        return True

    def _save_at_once(self) -> str:
        """From another thread than the one that learns; what became of it."""
        if self._config.checkpoint.restart_games:  # games would not start anew with this one
            return "the last regular save counts"
        try:
            return f"saved update {self._state.save_at_once():,}"
        except OSError as error:
            return f"could not save: {error}"

    def _asked_to_stop(self) -> None:
        """From the signal thread, as the launcher may not wait for the agreed stop."""
        if self._first:
            self._metrics.say(f"asked to stop; {self._save_at_once()}")

    def _end_without(self, missing: str) -> None:
        """From the watchdog's thread: save and end the job. Any rank could save, as all have the same weights."""
        here = (self._run_dir / "checkpoints").is_dir()  # on other hosts it may not be
        saved = self._save_at_once() if here else "nothing could be saved"
        self._say_here(f"{missing}; the job ends; {saved} in {self._run_dir}")
        abort(self._crew.world.comm, EXIT_LOST)

    def _say_here(self, text: str) -> None:
        print(f"dba3c: {self._crew.names([self._crew.world.rank])}: {text}", file=sys.stderr, flush=True)

    def _make_metrics(self, notes: list[str]) -> Metrics:
        if not self._first:
            return NullMetrics()
        with contextlib.suppress(OSError):  # a full disk is told of when it matters
            write_atomically(self._run_dir / "config.yaml", self._config.dump().encode())
        world = self._crew.world
        metrics = RunMetrics(self._run_dir, self._config, self._progress, world.hosts, terminal())
        for note in handshake.layout(world.places, self._config.env.n_sim) + notes:
            metrics.say(note)
        return metrics


def due(every: int, number: int) -> bool:
    return every > 0 and number % every == 0
