"""What README and docs/extending.md show can be done."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from dba3c.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTENDING = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
NAMES = {"algorithm.name": "smooth", "env.profile": "quarter", "model.torso": "tiny"}


def extended(folder: Path) -> Path:
    """Copy the package and add what the page shows, file by file."""
    shutil.copytree(ROOT / "dba3c", folder / "dba3c", ignore=shutil.ignore_patterns("__pycache__"))
    examples = "".join(re.findall(r"```python\n(.*?)```", EXTENDING, re.DOTALL))
    parts = re.split(r"^# (dba3c/\S+\.py)\n", examples, flags=re.MULTILINE)[1:]
    assert len(parts) == 2 * 2 * len(NAMES)
    for name, code in zip(parts[::2], parts[1::2], strict=True):
        if name == "dba3c/config/names.py":
            assert len(code.split()) == 3, "one line in the registry"
        else:
            assert not (folder / name).exists(), "one new file"
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(code)
    return folder


def test_the_example_of_an_own_algorithm_environment_and_network_trains(tmp_path: Path) -> None:
    short = {
        "env.n_sim": 2, "actor.n_steps": 5, "train.total_steps": 60, "evaluate.games": 1, "evaluate.max_frames": 40,
        "train.target_score": "none",
    }  # fmt: skip
    words = [f"--{key}={value}" for key, value in (NAMES | short).items()]
    command = [sys.executable, "-m", "dba3c.train", "--preset=paac", "--game=pong", "--run-dir=run", *words]
    result = subprocess.run(command, cwd=extended(tmp_path), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["updates"], summary["skipped"]) == (6, 0)
    convolution, hidden = (8 * 8 * 4 + 1) * 16, (9 * 9 * 16 + 1) * 128  # of 42×42 pixels with stride 4
    assert summary["parameters"] == convolution + hidden + (128 + 1) * (6 + 1)
    written = (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert all(f"{key.split('.')[1]}: {name}\n" in written for key, name in NAMES.items())


def test_commands_that_readme_names_exist() -> None:
    named = set(re.findall(r"^dba3c (\w+)", README, re.MULTILINE)) | set(re.findall(r"`dba3c (\w+)", README))
    assert {"report", "record", "export"} <= named <= set(COMMANDS)
