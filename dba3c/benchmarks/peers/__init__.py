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

from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching
from dba3c.benchmarks.launching import Bar, BenchError, stage
from dba3c.benchmarks.layouts import Allocation, trial
from dba3c.types import Json

HELP = "steps/s of the real trainer and of other systems, in turn; installs them below ~/.cache first"
SCRIPTS = Path(__file__).with_name("scripts")
OURS = "dba3c"
PRESET = "a2c"  # the peers' scripts build the same network


class Peer(NamedTuple):
    """A system, what pip installs for it, and the script that trains with it and writes its steps/s."""

    name: str
    packages: tuple[str, ...]
    script: str


PEERS = (
    Peer(
        "stable-baselines3 A2C",
        (
            "torch==2.13.0",
            "stable-baselines3>=2.7,<3",
            "ale-py>=0.12.1,<0.13",
            "opencv-python-headless",
            "gymnasium>=1.2,<2",
        ),
        "sb3_a2c.py",
    ),
)


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 15.0)
    benchmarks.add_repeats(parser)


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure our trainer and each peer in turn, and the ratio of their medians."""
    paces: dict[str, list[float]] = {name: [] for name in (OURS, *(peer.name for peer in PEERS))}
    bar.add_task("", total=len(PEERS) + options.repeats * len(paces))
    for peer in PEERS:
        with stage(bar, f"installing {peer.name}"):
            environment(peer)
    for _ in range(options.repeats):
        with stage(bar, OURS):
            paces[OURS].append(our_pace(options.game, options.seconds))
        for peer in PEERS:
            with stage(bar, peer.name):
                paces[peer.name].append(peer_pace(peer, options.game, options.seconds))
    rows = rows_of(paces)
    ratios = {row["system"]: row["ratio"] for row in rows[1:]}
    return {"machine": launching.machine(), "game": options.game, "rows": rows, "ratio": ratios}


def our_pace(game: str, seconds: float) -> float:
    """Measure the steps/s of our best choice: like the peers we learn from 5 steps, and may choose among layouts."""
    cores = launching.cores()
    chosen = [Allocation(cores, 1, "lockstep", n_sim, n_steps=5) for n_sim in (32, 64)]
    steps = int(1000 * cores * seconds)
    return max(float(trial(allocation, game, PRESET, steps)["steps_per_second"]) for allocation in chosen)


def peer_pace(peer: Peer, game: str, seconds: float) -> float:
    """Run the peer's script, which writes the steps/s of its best layout."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        call([str(environment(peer)), str(SCRIPTS / peer.script), game, str(seconds), str(file)])
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


def table(result: Json) -> Table:
    title = f"training {result['game']}, NIPS network, 128 hidden"
    shown = Table("system", "steps/s", "spread", "we are faster by", title=title)
    for row in result["rows"]:
        spread = f"{row['lowest']:,.0f}-{row['highest']:,.0f}"
        shown.add_row(row["system"], f"{row['steps_per_second']:,.0f}", spread, f"{row['ratio']:.2f} ×")
    return shown
