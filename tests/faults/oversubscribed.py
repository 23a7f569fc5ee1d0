"""Train far more ranks than there are cores, beside a program that keeps every core busy: there must be no false alarm.

python -m tests.faults.oversubscribed [--ranks 16] [--minutes 10]        (make oversubscribed)
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.fakes import real_jobs

BUSY = "while True: pass"
ALARMS = r"dead|stuck|silent|did not find each other|Traceback|failed"


def train(ranks: int, minutes: float, run_dir: Path) -> real_jobs.Result:
    """Train for so long after the start, which takes its time, too."""
    words = real_jobs.command(ranks, "-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={run_dir}")
    words += ["--checkpoint.every_updates=50", f"--train.max_minutes={minutes:g}", "--train.log_every_seconds=30"]
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            busy = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(busy.kill)
        return real_jobs.run_words(words, 60 * minutes + 600)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    from tests import conftest  # noqa: F401  # settings for Open MPI

    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        result = train(options.ranks, options.minutes, Path(folder))
        seconds = time.monotonic() - started
        print(result.output)
        assert result.code == 0, f"exit code {result.code}"
        alarms = [line for line in result.output.splitlines() if re.search(ALARMS, line)]
        updates = real_jobs.summary(Path(folder))["updates"]
    print(
        f"{options.ranks} ranks on {os.cpu_count()} busy cores: {updates} updates in {seconds:.0f} s, code 0,", end=" "
    )
    print(f"{len(alarms)} alarms", *alarms, sep="\n")
    return bool(alarms)


if __name__ == "__main__":
    sys.exit(main())
