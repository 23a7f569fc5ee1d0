"""Send random signals to a training, and resume it whenever one has ended it.

Each goes to any process of the job, at any moment from its first millisecond on. The weights at the end must be those
of an unbroken run.

python -m tests.faults.soak [--signals 100] [--seed 0] [--folder DIR --minutes 10]        (make soak)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dba3c.job.exit import EXIT_OK, EXIT_STOPPED
from tests.fakes import real_jobs
from tests.faults import four_ranks
from tests.faults.four_ranks import GUARD

RANKS = 2
STEPS = 2_400  # 150 updates: several jobs fit into one training
EXACT = (
    "--checkpoint.restart_games=true",
    "--checkpoint.every_updates=5",
    "--comm.check_every_updates=7",
    "--evaluate.games=4",
    "--evaluate.every_updates=20",
    "--evaluate.max_frames=240",
)
KINDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP)
START_SHARE = 0.5  # of the jobs get their first signal while they start; the others while they learn, save or evaluate,
AT_WORK = 4.0  # within so many seconds after their first save
LONGEST_STOP = 6.0  # seconds between SIGSTOP and SIGCONT; comm.silence_seconds is 30
END_SECONDS = 60.0  # that a job may take to end after a signal
PATIENCE = 900.0  # seconds that a job may take that nothing ends
Say = Callable[[str], None]


class Soak:
    """A folder with what was done so far, so that a soak may be done in several pieces."""

    def __init__(self, folder: Path, signals: int, seed: int, say: Say, steps: int = STEPS) -> None:
        self.say = say
        self.options = (*EXACT, f"--train.total_steps={steps}")
        self._folder = folder
        self._signals = signals
        self._file = folder / "signals.txt"
        self.sent: Counter[str] = Counter(self._file.read_text(encoding="ascii").split() if self._file.exists() else [])
        self.dice = random.Random(f"{seed} {self.sent.total()}")
        self.expected, self.startup = self._unbroken()
        say(f"unbroken: {self.expected}, the first save after {self.startup:.0f} s")

    @property
    def over(self) -> bool:
        return self.sent.total() >= self._signals

    @property
    def trainings(self) -> int:
        """How many have come to their end."""
        return len(list(self._folder.glob("training-*.finished")))

    @property
    def training(self) -> Path:
        """The one that has not."""
        return self._folder / f"training-{self.trainings}"

    def finish(self) -> None:
        """Compare the weights of a training that has come to its end."""
        found = real_jobs.summary(self.training)["weight_hash"]
        self.say(f"{self.training.name}: {found}")
        assert found == self.expected, f"{self.training}: {found} instead of {self.expected}"
        self.training.with_suffix(".finished").touch()

    def count(self, kind: signal.Signals) -> None:
        self.sent[kind.name] += 1
        with self._file.open("a", encoding="ascii") as file:
            file.write(f"{kind.name}\n")

    def _unbroken(self) -> tuple[str, float]:
        """The weights of a run that is left alone, and the seconds until its first save."""
        run_dir, file = self._folder / "unbroken", self._folder / "unbroken.json"
        if file.exists():
            weights, seconds = json.loads(file.read_text(encoding="ascii"))
            return str(weights), float(seconds)
        start = time.monotonic()
        job = four_ranks.Job(run_dir, *self.options, ranks=RANKS)
        job.wait_for_update(5)
        startup = time.monotonic() - start
        ended = job.end(start, PATIENCE, started=False)
        assert ended.code == 0, ended.output
        weights = str(real_jobs.summary(run_dir)["weight_hash"])
        file.write_text(json.dumps([weights, startup]), encoding="ascii")
        return weights, startup


def soak(state: Soak, minutes: float = float("inf")) -> bool:
    """Send all signals and end the last training; False if the time is up before."""
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        if disturbed_job(state.training, state) == 0:
            state.finish()
            if state.over:
                return True
    return False


def disturbed_job(run_dir: Path, state: Soak) -> int:
    """Start or resume the training, and send signals until one of them, or the last update, ends it; the exit code."""
    job, start = four_ranks.Job(run_dir, *state.options, ranks=RANKS), time.monotonic()
    if state.dice.random() < START_SHARE:
        pause = state.dice.uniform(0.0, state.startup)
    else:  # however long it takes to start on a busy machine
        wait_for_save(job, run_dir)
        pause = state.dice.uniform(0.0, AT_WORK)
    saved, patience, only_stopped = 0, PATIENCE, True
    while not state.over and lasts(job, pause):
        process, kind = state.dice.choice(job.processes()), state.dice.choice(KINDS)
        who, saved = job.name_of(process), four_ranks.newest_update(run_dir)
        if not send(process, kind, state.dice):
            continue
        state.count(kind)
        state.say(f"{state.sent.total()}: {kind.name} to {who} after {time.monotonic() - start:.1f} s, update {saved}")
        pause = state.dice.uniform(0.0, AT_WORK)
        only_stopped = only_stopped and kind == signal.SIGSTOP
        if kind != signal.SIGSTOP and who != GUARD:
            patience = END_SECONDS
            break
    ended = job.end(time.monotonic(), patience, started=False)
    job.free_shared_memory()
    state.say(f"exit code {ended.code}")
    assert ended.code == 0 or not only_stopped, ended.output  # a stop is no reason to end a job
    if saved:
        assert four_ranks.loadable(run_dir) >= saved
    return ended.code


def wait_for_save(job: four_ranks.Job, run_dir: Path) -> None:
    """Wait until the job has saved something, or has ended."""
    before = four_ranks.newest_update(run_dir)
    while job.running and four_ranks.newest_update(run_dir) == before:
        time.sleep(0.02)


def lasts(job: four_ranks.Job, seconds: float) -> bool:
    """Wait so long; False if the job ends before."""
    moment = time.monotonic() + seconds
    while time.monotonic() < moment and job.running:
        time.sleep(0.005)
    return job.running


def send(process: int, kind: signal.Signals, dice: random.Random) -> bool:
    """Send a signal, and some time after SIGSTOP also SIGCONT; False if the process was gone before."""
    pause = dice.uniform(0.0, LONGEST_STOP)
    try:
        os.kill(process, kind)
    except ProcessLookupError:
        return False
    if kind == signal.SIGSTOP:
        time.sleep(pause)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    return True


def summary(state: Soak) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(state.sent.items()))
    return f"{counts}; {state.trainings} finished training(s), weights equal those of the unbroken run"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for this piece of it")
    parser.add_argument("--folder", type=Path, help="where the next piece finds what this one has done")
    options = parser.parse_args()
    from tests import conftest  # noqa: F401  # settings for Open MPI

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        state = Soak(folder, options.signals, options.seed, lambda text: print(text, flush=True))
        done = soak(state, options.minutes)
        print(summary(state) if done else f"{state.sent.total()} of {options.signals} signals: rerun to continue")
    return EXIT_OK if done else EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main())
