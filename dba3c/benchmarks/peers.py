"""Other systems on the same game and network, in an environment of their own, in turn with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, NamedTuple

from dba3c.benchmarks.launching import BenchError

SCRIPTS = Path(__file__).with_name("peer_scripts")


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


def environment(peer: Peer) -> Path:
    """The peer's own python, installed on first use below ~/.cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dba3c" / "peers" / Path(peer.script).stem
    python = cache / "bin" / "python"
    if not (cache / "installed").exists():
        venv.create(cache, clear=True, with_pip=True)
        call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages])
        (cache / "installed").touch()
    return python


def measure(peer: Peer, game: str, seconds: float) -> dict[str, Any]:
    """What the peer's script says: steps_per_second of its best layout, and which that is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        call([str(environment(peer)), str(SCRIPTS / peer.script), game, str(seconds), str(file)])
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def call(command: list[str]) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, cwd=Path(sys.prefix))
    if result.returncode:
        raise BenchError(f"{' '.join(command)} ended with code {result.returncode}:\n{result.stdout}{result.stderr}")
