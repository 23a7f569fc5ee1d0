"""The ranks that train together: what depends on who they are, and what happens when one of them fails."""

from __future__ import annotations

import contextlib
import threading
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dba3c.comm import RanksFailedError, make_transport
from dba3c.comm.server import without_simulators
from dba3c.comm.watchdog import NullWatchdog, Watchdog, Watched, make_watchdog
from dba3c.config import plugins
from dba3c.config.schema import Config
from dba3c.job import process
from dba3c.job.command_line import Parser
from dba3c.job.exit import EXIT_LOST, FORESEEN_BY, abort, agreed, foresee
from dba3c.job.start_guard import start_seconds
from dba3c.job.world import World
from dba3c.run_files.directory import LogFile, note_exit_code
from dba3c.types import Say, Strategy, Transport

if TYPE_CHECKING:  # needs TensorFlow
    from dba3c.training.state import State

MakeStrategy = Callable[[Transport], Strategy]
START_LIMITS = 4.0  # that a start may take: a rank that loads from a slow disk is alive, one that hangs in it seems so
SAVE_SECONDS = 30.0  # that an emergency save may take: the disk may be what has failed


class Ranks:
    """The ranks that are alive; all of them hold the same state after every update (or where they meet)."""

    strategy: Strategy

    def __init__(
        self,
        world: World,
        config: Config,
        make_strategy: MakeStrategy,
        state: State,
        say: Say,
        watchdog: Watchdog | NullWatchdog | None = None,
    ) -> None:
        """`watchdog` is one that has watched over the start."""
        self.world = world
        self.transport = make_transport(config.comm.transport, world.comm)
        self.failed: list[str] = []  # ranks that failed on the way
        self._config = config
        self._serving = without_simulators(config.comm, world.hosts)  # by their numbers when the job started
        self._make_strategy = make_strategy
        self._state = state
        self._say = say
        self._watchdog = watchdog or NullWatchdog()
        self._watches = watchdog is not None

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files."""
        return self.world.rank == 0

    @property
    def idle(self) -> tuple[int, ...]:
        """Ranks without simulators."""
        return tuple(rank for rank, number in enumerate(self.world.numbers) if number in self._serving)

    def start(self) -> None:
        """Begin to update together, under the eyes of a watchdog."""
        limit = self._config.comm.silence_seconds
        if self._watches:
            self._watchdog.set(limit, self.end_job, self._say)
        else:
            self._watchdog = make_watchdog(self.transport, self.world.names, limit, self.end_job, self._say)
        self.strategy = Watched(self._make_strategy(self.transport), self._watchdog)
        self.met()

    def met(self) -> None:
        """Take note that all ranks have the same state."""
        if not self.strategy.equal_weights:
            self._state.keep_meeting()

    def stop(self) -> None:
        self.strategy.close()
        self._watchdog.close()
        self._watches = False

    def busy(self, what: str, seconds: float = float("inf")) -> contextlib.AbstractContextManager[None]:
        """Declare that this rank does something that may take longer than an update, but not than `seconds`."""
        return self._watchdog.busy(what, seconds)

    def names(self, ranks: Iterable[int]) -> str:
        return ", ".join(self.world.names[rank] for rank in ranks)

    def say_here(self, text: str) -> None:
        """Print a message of this very rank."""
        process.say(f"dba3c: {self.names([self.world.rank])}: {text}")

    def end_job(self, failure: str) -> None:
        """Say why, save and end the job, from the watchdog's thread. With equal weights any rank can save."""
        foresee(EXIT_LOST)
        self.say_here(f"{failure}; the job ends")
        here = (self._state.run_dir / "checkpoints").is_dir()  # on other hosts it may not be there
        if here:
            saved = limited(SAVE_SECONDS, lambda: self._state.save_now(self.strategy.equal_weights))
        else:
            saved = "nothing could be saved"
        self.say_here(f"{saved} in {self._state.run_dir}")
        abort(self.world.comm, EXIT_LOST)

    def shrink(self) -> str:
        """Continue with the surviving ranks, from the newest update that one of them has; return a notice."""
        while True:
            with contextlib.suppress(RanksFailedError):  # another rank may fail meanwhile
                notice = self._shrink()
                if len(self.idle) == self.world.size:
                    self._end_without_players()
                self.start()
                return notice

    def _end_without_players(self) -> None:
        if self.first:
            self.end_job(f"no rank with simulators is left after {', '.join(self.failed)} failed")
        self.transport.broadcast(None)  # waits for that end

    def _shrink(self) -> str:
        before = self.world
        self.transport = self.transport.shrink()
        self.stop()
        state = self._state
        if not self.strategy.equal_weights:
            state.return_to_meeting()
        alive, updates = zip(*self.transport.gather((before.rank, state.progress.updates)), strict=True)
        if min(updates) < max(updates):
            newest = updates.index(max(updates))
            theirs = self.transport.broadcast(state.snapshot() if self.transport.rank == newest else None, newest)
            if theirs is not None and state.progress.updates < max(updates):
                state.restore(theirs)
        failed = [self.names([rank]) for rank in range(before.size) if rank not in alive]
        self.failed += failed
        self.world = before._replace(
            comm=self.transport.comm,
            rank=self.transport.rank,
            size=self.transport.size,
            places=[before.places[rank] for rank in alive],
            numbers=tuple(before.numbers[rank] for rank in alive),
        )
        batch, left = self._config.batch_size, f"training continues on {len(alive)} of {before.size} ranks"
        if self.strategy.equal_weights:
            rest = f"with {batch * len(alive):,} samples per update instead of {batch * before.size:,}"
        else:
            rest = f"from update {max(updates):,}, after which they last met"
        return f"{', '.join(failed)} failed in update {max(updates) + 1:,}: {left}, {rest}"


def limited(seconds: float, work: Callable[[], str]) -> str:
    """Return what `work` says, or that it took too long; it is then left alone in its thread."""
    said = [f"nothing could be saved within {seconds:g} s, the last regular save counts"]
    thread = threading.Thread(target=lambda: said.append(work()), daemon=True, name="emergency save")
    thread.start()
    thread.join(seconds)
    return said[-1]


def report_to(run_dir: Path) -> None:
    """Keep the messages of this rank, and the exit code that it foresees, in a run directory."""
    process.OUTLETS[:] = [LogFile(run_dir).write]
    FORESEEN_BY[:] = [partial(note_exit_code, run_dir)]


def watch_start(world: World) -> Watchdog | NullWatchdog:
    """Start the watchdog that covers the start of a job, in place of the guard over MPI's own start."""
    from dba3c.comm.mpi import MpiTransport  # starts MPI

    def end_job(failure: str) -> None:
        foresee(EXIT_LOST)
        process.say(f"dba3c: rank {world.rank} on {world.host}: {failure}; the job ends")
        abort(world.comm, EXIT_LOST)

    limit = start_seconds()
    watchdog = make_watchdog(MpiTransport(world.comm), world.names, limit, end_job, process.say, START_LIMITS * limit)
    if world.guard is not None:
        world.guard.release()
    return watchdog


def prepare_plugins(world: World, argv: list[str]) -> None:
    """Load TensorFlow before plug-ins do, which would not know how many threads this rank may keep busy."""
    if plugins.wanted(argv):
        process.load_tensorflow(world.threads, world.phase)


def parsed(world: World, parser: Callable[[], Parser], argv: list[str]) -> Namespace:
    """Parse a command line on all ranks, which leave together if it is refused."""
    prepare_plugins(world, argv)
    return agreed(world, lambda: parser().parse_args(argv))


@contextlib.contextmanager
def watched(
    world: World, watchdog: Watchdog | NullWatchdog, silence_seconds: float, what: str
) -> Generator[None, None, None]:
    """Watch over work, however long it takes, until it is done on all ranks: MPI_Finalize waits for a minute only."""
    world.comm.Barrier()  # from here on no rank has a reason to be silent for long
    watchdog.set(silence_seconds)
    with watchdog.busy(what):
        yield
        world.comm.Barrier()
    watchdog.close()
