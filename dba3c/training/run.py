"""One training run: resume, learn, and end well."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from dba3c.comm import RanksFailedError
from dba3c.comm.watchdog import NullWatchdog, Watchdog
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_OK, EXIT_STOPPED, agreed, foresee, leave
from dba3c.job.signals import StopSignal
from dba3c.job.world import World
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.directory import Claim, RunDirectory, prepare_directory, write_exit_code
from dba3c.run_files.progress import Callback, Progress
from dba3c.training import build, injected, loop, outcome
from dba3c.training.between_updates import Ask, CheckWeights, Consumer, Evaluate, Log, Save
from dba3c.training.injected import Faults
from dba3c.training.ranks import Ranks
from dba3c.training.state import State
from dba3c.types import Json, Strategy, Transport, Update


class Run:
    """A run directory and everything that works on it."""

    _last: Update | None = None
    _announced = _said_last = False  # that it stops; the last line

    def __init__(
        self,
        world: World,
        config: Config,
        run_dir: Path,
        faults: Faults,
        watchdog: Watchdog | NullWatchdog | None = None,
        claim: Claim | None = None,
        first: Checkpoint | None = None,
        callback: Callback | None = None,
    ) -> None:
        """`watchdog` has watched over the start; `first` is an agent to start from, `claim` rank 0's."""
        self._config = config
        self._run_dir = run_dir
        self._speaking = threading.RLock()  # so that the last line is the last
        self._timings = injected.timings(config.debug, world.rank)
        world.phase("building the network")
        self._agent = agreed(world, lambda: build.agent(config, first))
        trainers = build.trainers(config, self._agent, lambda: self._actor)
        learner = injected.learner(self._agent, trainers, faults, config.debug.staleness)
        self._learner = build.guarded(learner, self._agent, lambda: self._ranks)
        self._optimizer = build.optimizer(config, self._agent)
        self._state = State(config, self._agent, self._optimizer, run_dir)
        self._log = Log(config, run_dir, self._state)
        self._directory = RunDirectory(run_dir, claim, self._log)
        self._state.before_saving += [faults.refuse_to_save, self._directory.refuse_others]
        self._ranks = Ranks(world, config, self._make_strategy, self._state, self._log.say, watchdog)
        self._log.open(world, self._resume())
        self._log.phase(f"starting {world.size * config.env.n_sim} simulators")
        around = build.worker(config.comm, world.hosts, world.rank), world.threads, self._timings, faults
        self._actor = build.actor(config, self._agent, *around, self._ranks.say_here, self._ranks.transport)
        self._check = CheckWeights(config, self._agent, self._ranks)
        self._evaluate = Evaluate(config, self._agent, self._ranks, self._state, self._log)
        self._save = Save(config, self._ranks, self._state, self._actor, self._log, self._directory)
        self._consumers: list[Consumer] = [self._log, self._check, self._evaluate, self._save]
        self._ranks.start()
        self._stop = StopSignal(self._save_at_once)
        self._callback = Ask(callback, self._state, self._stop)

    @property
    def _progress(self) -> Progress:
        return self._state.progress

    def train(self) -> int:
        """Train until the steps are done, the target is reached or a signal stops it; return the exit code."""
        try:
            if self._is_over():
                return self._already_done()
            self._actor.restart(self._progress.updates)
            self._log.phase("training begins; the first update takes longer, as it compiles the network")
            while True:
                try:
                    return self._end(self._learn())
                except RanksFailedError:
                    if self._config.comm.on_failure == "abort":
                        raise
                    self._continue_with_survivors()
        except Exception as error:
            error.add_note(f"after update {self._progress.updates:,}")
            raise

    def _resume(self) -> list[str]:
        """Give every rank the newest checkpoint of rank 0, or its first weights; return the messages about it."""
        notes: list[str] = []
        transport = self._ranks.transport
        saved = agreed(self._ranks.world, lambda: self._state.load(notes) if self._ranks.first else None)
        saved = transport.broadcast(saved)
        if saved is None:
            self._agent.load(transport.broadcast(self._agent.weights.numpy()), self._agent.clock)
            return notes
        self._state.restore(saved)
        progress = self._progress
        progress.bad_in_a_row = 0
        progress.judge(self._config.target_score, self._config.evaluate.in_a_row)  # which may be others now
        return notes

    def _make_strategy(self, transport: Transport) -> Strategy:
        owners = build.owners(self._config.comm, self._ranks.world.hosts)
        return build.strategy(
            self._config,
            transport,
            self._agent,
            self._optimizer,
            self._timings,
            self._progress,
            self._ranks_meet,
            owners,
        )

    def _ranks_meet(self, number: int) -> bool:
        """Whether the ranks do something together after update `number`."""
        return any(consumer.due(number) for consumer in self._consumers)

    def _learn(self) -> int:
        """Learn until something ends it; return the exit code."""
        total_steps = self._config.train.total_steps
        self._log.pace.resume()
        for update in loop.updates(
            self._actor,
            self._learner,
            self._ranks.strategy,
            self._progress,
            total_steps,
            self._wants_to_stop,
            self._timings,
        ):
            self._last = update
            self._log.after(update)
            self._callback.after(update)
            if update.stop:
                in_time = self._ranks.transport.broadcast(self._stop.requested() or not self._out_of_time())
                return EXIT_STOPPED if in_time else EXIT_OK
            if self._progress.bad_in_a_row >= self._config.train.max_bad_updates:
                return EXIT_NOT_FINITE
            due = [consumer for consumer in self._consumers if consumer.due(update.number)]
            for consumer in due:
                consumer.after(update)
            if due:
                self._ranks.met()
            self._save.after_any()
            if self._evaluate.target_reached:
                return EXIT_OK
            self._log.pace.resume()
        return EXIT_OK

    def _wants_to_stop(self) -> bool:
        """Whether this rank was asked to stop, has lost its directory, or finds on behalf of all that time is up."""
        return self._stop.requested() or self._directory.taken or (self._ranks.first and self._out_of_time())

    def _is_over(self) -> bool:
        """Whether the run has reached its end, by the state that all ranks share."""
        done = self._progress.steps >= self._config.train.total_steps
        return self._progress.target_reached or done or self._out_of_time()

    def _out_of_time(self) -> bool:
        limit = self._config.train.max_minutes
        return 0 < limit <= self._progress.seconds / 60

    def _continue_with_survivors(self) -> None:
        self._log.close(None)
        was_first = self._ranks.first
        notice = self._ranks.shrink()
        if self._ranks.first and not was_first:
            self._directory.claim = prepare_directory(self._run_dir)  # the failed rank's lock is gone
        self._log.open(self._ranks.world, [notice])

    def _end(self, code: int) -> int:
        """Evaluate, save and write the summary; return the exit code."""
        if code == EXIT_OK:
            self._evaluate.at_the_end()
        elif code == EXIT_STOPPED:
            self._announce_stop(f"by {self._stop.by}")
        with self._ranks.busy("ending"):
            self._check.check(self._progress.updates)
            # Episodes restart at regular saves only, or the resumed run would differ from an unbroken one.
            kept_exact = code == EXIT_STOPPED and self._config.checkpoint.restart_games
            saved = self._ranks.transport.broadcast(not self._directory.taken and (kept_exact or self._save.save()))
            figures = self._log.pace.figures(self._ranks.world.size)
            summary = outcome.summary(self._config, self._progress, self._ranks, self._agent) | figures
            code = code if saved else EXIT_NOT_SAVED
            self._say_last(self._last_line(code), code, summary)
        self._ranks.stop()
        self._actor.close()
        if self._ranks.failed:
            leave(self._ranks.world.comm, code)
        return code

    def _already_done(self) -> int:
        """End a run that had reached its end before; its summary is written if it was killed before that."""
        written = self._ranks.first and outcome.was_written(self._run_dir, self._progress)
        if not self._ranks.transport.broadcast(written):
            return self._end(EXIT_OK)
        with self._ranks.busy("ending"):
            self._say_last(f"nothing to do: {self._last_line(EXIT_OK)}", EXIT_OK)
        self._actor.close()
        self._ranks.stop()
        return EXIT_OK

    def _say_last(self, text: str, code: int, summary: Json | None = None) -> None:
        """Write the last files and say the last line.

        All ranks wait for that here, where a watchdog sees to it: MPI_Finalize does not wait for a slow disk.
        """
        limit = self._config.checkpoint.save_seconds
        with self._speaking:
            self._said_last = True
            with self._ranks.busy("saving", limit):  # before the last line: the panel would be painted below it
                self._log.close(None if self._directory.taken else summary)
            self._log.say(text)
        if self._ranks.first and not self._directory.taken:
            with self._ranks.busy("saving", limit), suppress(OSError):  # a full disk is reported when it matters
                write_exit_code(self._run_dir, code)
        self._ranks.transport.broadcast(None)

    def _last_line(self, code: int) -> str:
        who = {name: self._ranks_with(name) for name in ("stop", "not_finite")} | {"save": self._ranks.names([0])}
        return outcome.last_line(code, self._config, self._progress, self._run_dir, who)

    def _ranks_with(self, figure: str) -> str:
        """Name the ranks for which the last update has this figure set."""
        return self._ranks.names(np.flatnonzero(self._last.by_rank[figure])) if self._last else ""

    def _save_at_once(self, number: int) -> None:
        """Save from the signal thread, as the launcher may not wait for the stop that the ranks agree on."""
        with self._speaking:
            if self._ranks.first and not self._said_last:
                self._announce_stop(f"by {signal.Signals(number).name}")
                self._log.say(f"{self._state.save_now(self._ranks.strategy.equal_weights)} in {self._run_dir}")

    def _announce_stop(self, by: str) -> None:
        """Tell once that the job stops, before what may take long: a launcher may soon kill this rank."""
        if self._ranks.first and not self._directory.taken and not self._announced:
            self._announced = True
            foresee(EXIT_STOPPED)
            updates = self._progress.updates
            self._log.say(f"asked to stop {by} after {updates:,} updates; rerun the same command to resume")
