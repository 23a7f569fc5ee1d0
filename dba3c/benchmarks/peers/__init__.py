"""Other systems on the same game and network, in an environment of their own, in turn with ours."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from rich.console import Group
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching
from dba3c.benchmarks.launching import Bar, BenchError, stage
from dba3c.benchmarks.layouts import Allocation, trial
from dba3c.config.messages import ConfigError, suggest
from dba3c.types import Json

HELP = "steps/s of the real trainer and of other systems, in turn; installs them below ~/.cache first"
SCRIPTS = Path(__file__).with_name("scripts")
OURS = "dba3c"
TORCH = "torch==2.13.0"


class Peer(NamedTuple):
    """A system, what pip installs for it, and the script that trains with it and writes its steps/s."""

    name: str
    packages: tuple[str, ...]
    script: str
    arguments: tuple[str, ...] = ()  # of the script, before the game


class Contest(NamedTuple):
    """A recipe that several systems train by: the peers' scripts have the network and the segments of our preset."""

    preset: str
    n_sim: int  # of each of our ranks, which have one core each
    n_steps: int
    peers: tuple[Peer, ...]
    title: str
    pace: float  # steps/s of one of our cores, about


STABLE_BASELINES = (
    TORCH,
    "stable-baselines3>=2.7,<3",
    "ale-py>=0.12.1,<0.13",
    "opencv-python-headless",
    "gymnasium>=1.2,<2",
)
ENVPOOL = (TORCH, "envpool>=1.2.5,<2", "gymnasium>=1.2,<2", "setuptools")  # torch.compile needs a C++ compiler, too
CONTESTS = {
    "a2c": Contest(
        "a2c",
        32,
        20,
        (
            Peer("stable-baselines3 A2C", STABLE_BASELINES, "sb3_a2c.py"),
            Peer("torch.compile + EnvPool, one pass", ENVPOOL, "torch_envpool.py", ("a2c",)),
        ),
        "one pass over segments of 20 steps, 128 hidden units",
        1300,
    ),
    "ppo": Contest(
        "ppo",
        16,
        128,
        (Peer("torch.compile + EnvPool, PPO", ENVPOOL, "torch_envpool.py", ("ppo",)),),
        "PPO: 3 passes of 8 minibatches over segments of 16 × 128 steps, 256 hidden units, standardised pictures",
        600,
    ),
}


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 15.0)
    benchmarks.add_repeats(parser)
    names = ",".join(CONTESTS)
    parser.add_argument("--recipes", type=recipes, default=[*CONTESTS], metavar="A,B", help=f"default: {names}")


def recipes(text: str) -> list[str]:
    """Read names of recipes, with commas between them."""
    for name in text.split(","):
        if name not in CONTESTS:
            raise ConfigError(f"--recipes={name}: is none of {', '.join(CONTESTS)}{suggest(name, CONTESTS)}")
    return text.split(",")


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure our trainer and each peer in turn, recipe by recipe, and the ratio of their medians."""
    contests = [CONTESTS[name] for name in options.recipes]
    everyone = [peer for contest in contests for peer in contest.peers]
    bar.add_task("", total=len(everyone) + options.repeats * (len(contests) + len(everyone)))
    for peer in everyone:
        with stage(bar, f"installing {peer.name}"):
            environment(peer)
    found = [contested(contest, options, bar) for contest in contests]
    rows = [row for contest in found for row in contest["rows"]]
    ratios = {row["system"]: row["ratio"] for row in rows if row["system"] != OURS}
    return {"machine": launching.machine(), "game": options.game, "contests": found, "ratio": ratios}


def contested(contest: Contest, options: Namespace, bar: Bar) -> Json:
    """Let everybody train by one recipe, in turn."""
    paces: dict[str, list[float]] = {name: [] for name in (OURS, *(peer.name for peer in contest.peers))}
    for _ in range(options.repeats):
        with stage(bar, f"{OURS}, {contest.preset}"):
            paces[OURS].append(our_pace(contest, options.game, options.seconds))
        for peer in contest.peers:
            with stage(bar, peer.name):
                paces[peer.name].append(peer_pace(peer, options.game, options.seconds))
    return {"title": contest.title, "rows": rows_of(paces)}


def our_pace(contest: Contest, game: str, seconds: float) -> float:
    """Measure the steps/s of one rank per core."""
    cores = launching.cores()
    allocation = Allocation(cores, 1, "lockstep", contest.n_sim, contest.n_steps)
    steps = int(contest.pace * cores * seconds)
    return float(trial(allocation, game, contest.preset, steps)["steps_per_second"])


def peer_pace(peer: Peer, game: str, seconds: float) -> float:
    """Run the peer's script, which writes the steps/s of its best layout."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        call([str(environment(peer)), str(SCRIPTS / peer.script), *peer.arguments, game, str(seconds), str(file)])
        return float(json.loads(file.read_text(encoding="utf-8"))["steps_per_second"])


def environment(peer: Peer) -> Path:
    """Install the peer below ~/.cache on first use; return its own python."""
    folder = cache() / "dba3c" / "peers" / Path(peer.script).stem
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, clear=True, with_pip=True)
        call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages])
        (folder / "installed").touch()
    return python


def cache() -> Path:
    """Return the user's folder for caches; a relative one counts as none, or we would run what lies in this folder."""
    wanted = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return wanted if wanted.is_absolute() else Path.home() / ".cache"


def call(command: list[str]) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, cwd=Path(sys.prefix))
    if result.returncode:
        raise BenchError(f"{' '.join(command)} ended with code {result.returncode}:\n{result.stdout}{result.stderr}")


def rows_of(paces: dict[str, list[float]]) -> list[Json]:
    medians = {name: statistics.median(values) for name, values in paces.items()}
    return [
        {
            "system": name,
            "steps_per_second": medians[name],
            "lowest": min(values),
            "highest": max(values),
            "ratio": medians[OURS] / medians[name],
        }
        for name, values in paces.items()
    ]


def table(result: Json) -> Group:
    return Group(*(table_of(contest, result["game"]) for contest in result["contests"]))


def table_of(contest: Json, game: str) -> Table:
    shown = Table("system", "steps/s", "spread", "we are faster by", title=f"training {game}, {contest['title']}")
    for row in contest["rows"]:
        spread = f"{row['lowest']:,.0f}-{row['highest']:,.0f}"
        shown.add_row(row["system"], f"{row['steps_per_second']:,.0f}", spread, f"{row['ratio']:.2f} ×")
    return shown
