"""One training run: the parts, the loop, and its consumers (metrics, evaluation, checkpoints)."""

from __future__ import annotations

import resource
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dba3c import build, checkpoint, debug, handshake, launch
from dba3c.agreement import check_weights, weight_hash
from dba3c.checkpoint import Checkpoint
from dba3c.evaluation import evaluate
from dba3c.launch import StopSignal, World
from dba3c.metrics import Metrics, NullMetrics, RunMetrics
from dba3c.pace import Pace
from dba3c.sections import Config
from dba3c.trainer import train
from dba3c.types import Progress, Update


class Run:
    """A run directory and everything that works on it."""

    def __init__(self, world: World, config: Config, run_dir: Path) -> None:
        self._world, self._config, self._run_dir = world, config, run_dir
        self._timings, self._pace = debug.timings(config.debug, world.rank), Pace()
        self._saving = threading.Lock()
        self._transport = build.transport(config, world.comm)
        self._agent = build.agent(config)
        self._optimizer = build.optimizer(config, self._agent)
        self._progress, notes = self._resume()
        self._communicator = build.communicator(
            config, self._transport, self._agent, self._optimizer, self._timings, self._progress, self._together
        )
        self._player = build.player(config, self._agent, world.rank, world.threads, self._timings)
        self._metrics = self._make_metrics(notes)
        self._seconds_before, self._evaluated_at = self._progress.seconds, -1
        self._stop = StopSignal(self._save_at_once if world.rank == 0 and not config.checkpoint.restart_games else None)

    def train(self) -> int:
        """Train until the steps are done, the target is reached or somebody stops it; the exit code."""
        steps = self._config.train.total_steps
        if self._progress.target_reached or self._progress.steps >= steps:
            self._metrics.say(f"nothing to do: {self._last_words(launch.EXIT_OK)}")
            self._metrics.close(None)
            self._player.close()
            self._communicator.close()
            return launch.EXIT_OK
        self._player.restart(self._progress.updates)
        self._pace.resume()
        code = launch.EXIT_OK
        for update in train(
            self._player, self._agent, self._communicator, self._progress, steps, self._stop, self._timings
        ):
            code = self._consume(update)
            if code != launch.EXIT_OK or self._target_reached():
                break
            self._pace.resume()
        return self._end(code)

    def _consume(self, update: Update) -> int:
        """Everything that happens between two updates; the exit code if this was the last one."""
        config, number = self._config, update.number
        self._pace.count(update, self._world.started)
        self._progress.seconds = self._seconds_before + time.monotonic() - self._world.started
        self._metrics.update(update, self._progress)
        if update.stop:
            return launch.EXIT_STOPPED
        if self._progress.bad_in_a_row >= config.train.max_bad_updates:
            return launch.EXIT_NOT_FINITE
        if due(config.comm.check_every_updates, number):
            check_weights(self._agent.weights.numpy(), self._transport, number)
        if config.evaluate.games and due(config.evaluate.every_updates, number):
            self._evaluate()
        if due(config.checkpoint.every_updates, number):
            self._save()
            if config.checkpoint.restart_games:
                self._player.restart(number)
        return launch.EXIT_OK

    def _together(self, number: int) -> bool:
        """After update `number` the ranks, or rank 0, do something with its weights."""
        config = self._config
        return any(
            due(every, number)
            for every in (
                config.comm.check_every_updates,
                config.evaluate.every_updates,
                config.checkpoint.every_updates,
            )
        )

    def _target_reached(self) -> bool:
        return self._evaluated_at == self._progress.updates and self._progress.target_reached

    def _evaluate(self) -> None:
        make_env = build.evaluation_env(self._config, self._world.threads)
        result = evaluate(self._config, self._agent, make_env, self._transport)
        self._progress.evaluated(result.mean, result.full, self._config.target_score)
        self._evaluated_at = self._progress.updates
        self._metrics.evaluated(len(result.scores), self._progress)
        games = f"mean of {len(result.scores)} greedy games"
        self._metrics.say(f"evaluation after update {self._progress.updates:,}: {result.mean:.1f}, {games}")

    def _end(self, code: int) -> int:
        """Final evaluation, save and summary; the exit code."""
        if code == launch.EXIT_OK and self._config.evaluate.games and self._evaluated_at != self._progress.updates:
            self._evaluate()
        self._communicator.close()
        check_weights(self._agent.weights.numpy(), self._transport, self._progress.updates)
        kept_exact = code == launch.EXIT_STOPPED and self._config.checkpoint.restart_games
        # Games restart at regular saves only, or the resumed run would differ from an unbroken one.
        saved = kept_exact or self._transport.broadcast(self._save())
        self._player.close()
        self._metrics.say(
            self._last_words(code) if saved else "the last save failed: what came after the one before is lost"
        )
        self._metrics.close(self._summary())
        return code if saved else launch.EXIT_NOT_SAVED

    def _last_words(self, code: int) -> str:
        where = f"after {self._progress.updates:,} updates, {self._progress.steps:,} steps"
        if code == launch.EXIT_STOPPED and self._config.checkpoint.restart_games:
            return f"stopped {where}; the same command goes on from the last regular save in {self._run_dir}"
        if code == launch.EXIT_STOPPED:
            return f"stopped {where}; saved in {self._run_dir}, the same command goes on from there"
        if code == launch.EXIT_NOT_FINITE:
            count = self._progress.bad_in_a_row
            return f"gave up {where}: gradients not finite in {count} updates in a row; the last good weights are saved"
        reached = f"target score {self._config.target_score} reached" if self._progress.target_reached else "done"
        return f"{reached} {where}; results in {self._run_dir}"

    def _resume(self) -> tuple[Progress, list[str]]:
        """Rank 0's newest checkpoint, or its first weights, on every rank; and what there is to say about it."""
        notes: list[str] = []
        saved = launch.agreed(self._world, lambda: self._load(notes))
        saved = self._transport.broadcast(saved)
        if saved is None:
            self._agent.load(self._transport.broadcast(self._agent.weights.numpy()), 0)
            return Progress(), notes
        self._agent.load(saved.weights, saved.progress["updates"])
        self._optimizer.restore(saved.optimizer)
        progress = Progress(**saved.progress | {"bad_in_a_row": 0})
        if progress.evaluation_score is not None:  # the target may be another one now
            progress.evaluated(progress.evaluation_score, progress.target_reached, self._config.target_score)
        return progress, notes

    def _load(self, notes: list[str]) -> Checkpoint | None:
        if self._world.rank != 0:
            return None
        saved = checkpoint.load_newest(self._run_dir / "checkpoints", notes.append)
        if saved is not None:
            changes = checkpoint.differences(saved.config, self._config)
            updates, steps = saved.progress["updates"], saved.progress["steps"]
            notes.append(f"resuming {self._run_dir} at update {updates:,}, step {steps:,}, with new games")
            notes += [f"changed since then: {change}" for change in changes]
        return saved

    def _save(self) -> bool:
        """Save on rank 0; a disk that is full does not end the training."""
        if self._world.rank == 0:
            try:
                self._write(self._state())
            except OSError as error:
                self._metrics.say(f"could not save update {self._progress.updates:,}: {error}; older ones are kept")
                return False
        return True

    def _save_at_once(self) -> None:
        """From the signal thread: save the newest whole update, as the launcher may not wait for the agreed stop."""
        while True:
            state = self._state()
            same = state.progress["updates"] == self._progress.updates
            if same and state.optimizer["steps"] + self._progress.skipped == self._progress.updates:
                break  # no update was being applied while the arrays were read
            time.sleep(0.001)
        self._write(state)
        self._metrics.say(f"asked to stop; saved update {state.progress['updates']:,}")

    def _state(self) -> Checkpoint:
        progress = asdict(self._progress)  # first: _save_at_once relies on the order
        return Checkpoint(self._agent.weights.numpy(), self._optimizer.state(), progress, self._config)

    def _write(self, state: Checkpoint) -> None:
        with self._saving:
            checkpoint.save(self._run_dir / "checkpoints", state, self._config.checkpoint.keep)

    def _make_metrics(self, notes: list[str]) -> Metrics:
        if self._world.rank != 0:
            return NullMetrics()
        checkpoint.write_atomically(self._run_dir / "config.yaml", self._config.dump().encode())
        metrics = RunMetrics(self._run_dir, self._config, self._progress, self._world.hosts, launch.terminal())
        for note in handshake.layout(self._world.places, self._config.env.n_sim) + notes:
            metrics.say(note)
        return metrics

    def _summary(self) -> dict[str, Any]:
        memory = self._transport.gather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
        return {
            "game": self._config.env.game,
            "steps": self._progress.steps,
            "updates": self._progress.updates,
            "seconds": self._progress.seconds,
            "ranks": self._world.size,
            "cores": self._world.cores,
            "threads": self._world.threads,
            "parameters": self._agent.layout.total,
            "weight_hash": weight_hash(self._agent.weights.numpy()),
            "evaluation_score": self._progress.evaluation_score,
            "best_score": self._progress.best_score,
            "target_reached": self._progress.target_reached,
            "skipped": self._progress.skipped,
            "memory_mb_per_rank": max(memory),
        } | self._pace.figures(self._world.size)


def due(every: int, number: int) -> bool:
    return every > 0 and number % every == 0
