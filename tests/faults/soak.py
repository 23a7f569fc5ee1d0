"""Kill and resume, again and again, at random moments: the weights at the end must be those of an unbroken run.

python -m tests.faults.soak [--kills 50] [--seed 0]        (make soak)
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fakes import real_jobs
from tests.faults import four_ranks

STEPS = 4_800  # 150 updates: several kills fit into one training
EXACT = (
    "--checkpoint.restart_games=true",
    "--checkpoint.every_updates=5",
    "--comm.check_every_updates=7",
    "--evaluate.games=4",
    "--evaluate.every_updates=20",
    "--evaluate.max_frames=240",
)
AT_WORK = 4.0  # seconds after its start within which a job is killed: starting, learning, saving or evaluating


def soak(kills: int, seed: int, folder: Path, say: Callable[[str], None], steps: int = STEPS) -> int:
    """Kill so many times; how many trainings came to their end, all with the same weights."""
    dice = random.Random(seed)
    started = time.monotonic()
    options = (*EXACT, f"--train.total_steps={steps}")
    expected, startup = unbroken(folder / "unbroken", options)
    say(f"unbroken: {expected}, {time.monotonic() - started:.0f} s")
    trainings = killed = 0
    while killed < kills:
        run_dir = folder / f"training-{trainings}"
        while killed < kills and kill_once(run_dir, options, startup, dice, say):
            killed += 1
            say(f"kill {killed} of {kills}")
        result = four_ranks.Job(run_dir, *options).end(time.monotonic(), 300, started=False)
        assert result.code == 0, result.output
        found = real_jobs.summary(run_dir)["weight_hash"]
        say(f"training {trainings}: {found}")
        assert found == expected, f"{run_dir}: {found} instead of {expected}"
        trainings += 1
    return trainings


def unbroken(run_dir: Path, options: tuple[str, ...]) -> tuple[str, float]:
    """The weights of a run that is left alone, and the seconds until its first save."""
    job, start = four_ranks.Job(run_dir, *options), time.monotonic()
    job.wait_for_update(5)
    startup = time.monotonic() - start
    ended = job.end(start, 300, started=False)
    assert ended.code == 0, ended.output
    return str(real_jobs.summary(run_dir)["weight_hash"]), startup


def kill_once(
    run_dir: Path, options: tuple[str, ...], startup: float, dice: random.Random, say: Callable[[str], None]
) -> bool:
    """Start or resume the training and kill one of its processes; False if it was done before."""
    job, start = four_ranks.Job(run_dir, *options), time.monotonic()
    moment = start + startup + dice.uniform(-0.3 * startup, AT_WORK)
    while time.monotonic() < moment and job.running:
        time.sleep(0.005)
    victim = dice.randrange(-1, four_ranks.RANKS)
    if not job.kill_one(victim):
        return False
    before = four_ranks.newest_update(run_dir)
    ended = job.end(time.monotonic(), 60, started=False)
    assert ended.code != 0, ended.output
    who = "the launcher" if victim < 0 else f"rank {victim}"
    say(f"{who} killed {time.monotonic() - start:.1f} s after the start, update {before} is saved")
    if before:
        assert four_ranks.loadable(run_dir) >= before
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from tests import conftest  # noqa: F401  # settings for Open MPI

    with tempfile.TemporaryDirectory() as folder:
        trainings = soak(options.kills, options.seed, Path(folder), lambda text: print(text, flush=True))
    print(f"{options.kills} kills, {trainings} trainings: all ended with the weights of the unbroken one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
