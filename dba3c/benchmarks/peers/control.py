"""Control tasks until they are solved: our trainer and another system, in turn, on the same machine."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from dba3c.benchmarks import launching, peers
from dba3c.benchmarks.launching import Bar, stage
from dba3c.benchmarks.peers import SCRIPTS, Peer
from dba3c.config import loading
from dba3c.config.messages import ConfigError, suggest
from dba3c.job.command_line import checked_path
from dba3c.types import Json

HELP = "seconds until control tasks are solved, by us and by stable-baselines3 with the settings of its Zoo"
PEER = Peer(
    "stable-baselines3 PPO",
    ("torch==2.13.0", "stable-baselines3>=2.7,<3", "gymnasium[mujoco,box2d]>=1.2,<2"),
    "sb3_ppo.py",
)
LUNAR_LANDER = (  # a longer view, longer segments, smaller steps and a bonus for entropy, as its rewards come late
    "--env.normalise_observations=false", "--actor.n_steps=128", "--algorithm.minibatches=16", "--algorithm.passes=6",
    "--algorithm.entropy=0.01", "--algorithm.gamma=0.999", "--algorithm.gae_lambda=0.98",
    "--optimizer.learning_rate=0.0005", "--train.total_steps=800k", "--evaluate.every_updates=2400",
)  # fmt: skip
TASKS: dict[str, tuple[str, ...]] = {  # and what is changed in the preset for them
    "CartPole-v1": (),
    "InvertedPendulum-v5": (),
    "LunarLander-v3": LUNAR_LANDER,
    "Acrobot-v1": (),
}


class Spent(NamedTuple):
    """What a program has taken."""

    seconds: float
    core_seconds: float  # of computing, on any core


def options(parser: ArgumentParser) -> None:
    compared = ",".join(TASKS)
    parser.add_argument("--tasks", type=tasks, default=[*TASKS][:3], metavar="A,B", help=f"some of {compared}")
    parser.add_argument("--runs", type=checked_path, metavar="FOLDER", help="keep our run directories there")


def tasks(text: str) -> list[str]:
    """Read names of tasks, with commas between them."""
    names = text.split(",")
    for name in names:
        if name not in TASKS:
            raise ConfigError(f"--tasks={name}: is not among those that are compared{suggest(name, TASKS)}")
    return names


def measure(options: Namespace, bar: Bar) -> Json:
    """Let both systems solve each task, one after the other."""
    rows: list[Json] = []
    bar.add_task("", total=1 + 2 * len(options.tasks))
    with stage(bar, f"installing {PEER.name}"):
        peers.environment(PEER)
    with tempfile.TemporaryDirectory() as folder:
        for task in options.tasks:
            with stage(bar, f"{task}, {peers.OURS}"):
                rows.append(ours(task, (options.runs or Path(folder)) / task))
            with stage(bar, f"{task}, {PEER.name}"):
                rows.append(theirs(task, Path(folder) / "result.json"))
    return {"machine": launching.machine(), "rows": rows}


def ours(task: str, run_dir: Path) -> Json:
    """Train with our preset for such tasks, on one rank with one core, as the other system has it."""
    words = [sys.executable, "-m", "dba3c.train", task, *TASKS[task], "--run-dir", str(run_dir.resolve())]
    words += ["--evaluate.in_a_row=1"]  # as the other system is stopped
    spent = called(words)
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    return row(task, peers.OURS, summary["evaluation_score"], summary["evaluation_games"], summary["steps"], spent)


def theirs(task: str, file: Path) -> Json:
    target = str(loading.load("ppo-control", [f"env.game={task}"]).target_score)
    spent = called([str(peers.environment(PEER)), str(SCRIPTS / PEER.script), task, target, str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))
    return row(task, PEER.name, found["score"], found["episodes"], found["steps"], spent)


def row(task: str, system: str, score: float, episodes: int, steps: int, spent: Spent) -> Json:
    return {"task": task, "system": system, "score": score, "episodes": episodes, "steps": steps, **spent._asdict()}


def called(command: list[str]) -> Spent:
    """Run a program on one core; return what it took, from its start to its end."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})  # is inherited
    try:
        peers.call(command)
    finally:
        os.sched_setaffinity(0, allowed)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.perf_counter() - start, computed)


def table(result: Json) -> Table:
    title = "until the mean of 50 greedy episodes reaches gymnasium's threshold, on one core"
    shown = Table("task", "system", "score", "steps", "seconds", "core-seconds", title=title)
    for found in result["rows"]:
        score = f"{found['score']:,.1f} ({found['episodes']})"
        times = f"{found['seconds']:,.0f}", f"{found['core_seconds']:,.0f}"
        shown.add_row(found["task"], found["system"], score, f"{found['steps']:,}", *times)
    return shown
