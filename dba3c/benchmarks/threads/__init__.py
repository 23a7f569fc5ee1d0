"""One rank with a thread for each core against ranks of one core: pace, memory of a node, the interpreter's lock."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from rich.console import Group
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching, layouts
from dba3c.benchmarks.launching import Bar, BenchError, stage
from dba3c.benchmarks.layouts import Allocation
from dba3c.types import Json

HELP = "one rank with a thread per core against ranks of one core: pace, memory, the interpreter's lock"
NODE = 12  # cores of a node that the memory is computed for: the paper's
SAMPLES_PER_SECOND = 200  # of who holds the lock
START_SECONDS = 300.0  # that a training may take until its first row of metrics.csv
PY_SPY = "py-spy"


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 12.0)
    benchmarks.add_repeats(parser, 3)
    benchmarks.add_preset(parser)
    parser.add_argument("--simulators", type=int, default=32, metavar="N", help="per core (default: 32)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="of a segment (default: 20)")


def allocations(cores: int, simulators: int, n_steps: int) -> list[Allocation]:
    """List layouts with one effective batch: ranks of one core; one rank, with one and with two shards per core."""
    together = Allocation(1, cores, "lockstep", simulators * cores, n_steps)
    return [Allocation(cores, 1, "lockstep", simulators, n_steps), together, together._replace(shards_per_core=2)]


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure the layouts in turn, so that a noisy minute hits them all, and then who holds the lock."""
    cores = launching.cores()
    tried = allocations(cores, options.simulators, options.steps)
    summaries: dict[Allocation, list[Json]] = {allocation: [] for allocation in tried}
    bar.add_task("", total=options.repeats * len(tried) + 2)
    with stage(bar, "a first guess at the pace"):
        pace = layouts.trial(tried[0], options.game, options.preset, 0)["steps_per_second"]
    for number in range(options.repeats):
        for allocation in tried if number % 2 == 0 else tried[::-1]:
            with stage(bar, str(allocation)):
                steps = int(pace * options.seconds)
                summaries[allocation].append(layouts.trial(allocation, options.game, options.preset, steps))
    with stage(bar, "the interpreter's lock"):
        held = lock_share(tried[1], options.game, options.preset, options.seconds)
    rows = [row(allocation, summaries[allocation], summaries[tried[0]]) for allocation in tried]
    memory = node_memory(cores, rows[0]["memory_mb_per_rank"], rows[1]["memory_mb_per_rank"])
    found = {"machine": launching.machine(), "game": options.game, "preset": options.preset, "rows": rows}
    return found | {"memory": memory, "lock_share": held, "lock_cores": cores / held if held else None}


def row(allocation: Allocation, summaries: list[Json], first: list[Json]) -> Json:
    """Summarise an allocation; its ratio to the first is the median over trials of the same round."""
    paces = [summary["steps_per_second"] for summary in summaries]
    ratios = [pace / other["steps_per_second"] for pace, other in zip(paces, first, strict=True)]
    return {
        "layout": str(allocation),
        "steps_per_second": float(np.median(paces)),
        "ratio": float(np.median(ratios)),
        "lowest": min(ratios),
        "highest": max(ratios),
        "memory_mb_per_rank": int(np.median([summary["memory_mb_per_rank"] for summary in summaries])),
    }


def node_memory(cores: int, one: int, together: int) -> Json:
    """Compute the MB of a node: each core of a rank takes what each more has taken here."""
    each = (together - one) / max(cores - 1, 1)
    return {"cores": NODE, "ranks_of_one_core": NODE * one, "one_rank": round(one + (NODE - 1) * each)}


def lock_share(allocation: Allocation, game: str, preset: str, seconds: float) -> float | None:
    """Sample a training of one rank: the share of time in which a thread holds the lock; None without py-spy."""
    if shutil.which(PY_SPY) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        words = ["--preset", preset, "--game", game, "--run-dir", folder, "--train.log_every_seconds=1"]
        words += [*layouts.ONLY_TRAINING, *allocation.arguments]
        command = [sys.executable, "-m", "dba3c.train", *words]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as training:
            try:
                wait_for_rows(Path(folder) / "metrics.csv", training)
                return sampled(training.pid, seconds, Path(folder) / "samples")
            finally:
                training.send_signal(signal.SIGTERM)


def wait_for_rows(file: Path, training: subprocess.Popen[bytes]) -> None:
    """Wait until a training has written two rows: the first update compiles."""
    end = time.monotonic() + START_SECONDS
    while not file.exists() or len(file.read_text(encoding="utf-8").splitlines()) < 3:
        if training.poll() is not None or time.monotonic() > end:
            raise BenchError("the training whose threads were to be sampled did not start")
        time.sleep(0.2)


def sampled(process: int, seconds: float, file: Path) -> float:
    """Return the share of samples in which some thread of a process holds the interpreter's lock."""
    duration = max(2, round(seconds))
    rate = ["--rate", str(SAMPLES_PER_SECOND), "--duration", str(duration)]
    words = [PY_SPY, "record", "--gil", *rate, "--format", "raw", "--output", str(file), "--pid", str(process)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BenchError(f"{' '.join(words)} ended with code {result.returncode}:\n{result.stderr}")
    stacks = file.read_text(encoding="utf-8").splitlines()
    return sum(int(line.rpartition(" ")[2]) for line in stacks) / (duration * SAMPLES_PER_SECOND)


def table(result: Json) -> Group:
    shown = Table("layout", "steps/s", "× first", "range", "MB per rank", title=f"training {result['game']}")
    for line in result["rows"]:
        spread = f"{line['lowest']:.2f}-{line['highest']:.2f}"
        cells = [f"{line['steps_per_second']:,.0f}", f"{line['ratio']:.3f}", spread, f"{line['memory_mb_per_rank']:,}"]
        shown.add_row(line["layout"], *cells)
    memory = result["memory"]
    words = (
        f"memory of a node of {memory['cores']} cores, computed from these: {memory['ranks_of_one_core']:,} MB in ranks"
        f" of one core, {memory['one_rank']:,} MB in one rank"
    )
    return Group(shown, words, lock_line(result))


def lock_line(result: Json) -> str:
    """Say how long the interpreter's lock is held, and how many such cores would need all of its time."""
    held = result["lock_share"]
    if held is None:
        return f"the interpreter's lock was not sampled: {PY_SPY} is not installed (pip install {PY_SPY})"
    cores = result["machine"]["cores"]
    saturated = f"; {result['lock_cores']:.0f} cores would need all of it" if held else ""
    return f"the interpreter's lock was held {held:.1%} of the time in one rank of {cores} cores{saturated}"
