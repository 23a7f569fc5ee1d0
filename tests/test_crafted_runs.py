"""Run directories that somebody crafted: report, results and export take them or refuse them in one line.

All 300 of them: make crafted
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dba3c import export, report, results
from dba3c.run_files import checkpoint, trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.progress import Progress
from tests.conftest import Happened
from tests.fakes.made_up_runs import ended, row, write_run
from tests.fakes.memory import most_memory
from tests.fakes.settings import settings

COUNT = 300 if os.environ.get("CRAFTED") == "all" else 18
MOST_MEMORY = 300e6  # bytes more than before
Dice = random.Random
ODD_CELLS = (
    "", "x", "nan", "-inf", "1e308", "-1e308", "1e17", "-1e17", "9" * 500, "1e-320", '"', '"a\nb"', "$x^$",
    "x" * 140_000, "\0", "é", "0x10", "1_0", "-0",
)  # fmt: skip
ODD_JSON = (
    '"many"', "[1, 2]", "{}", "true", "null", "NaN", "-Infinity", "1e999", "0", "-1", "1e17", "1" * 5000, '"\\ud800"',
    "[" * 3000,
)  # fmt: skip
ODD_SETTINGS = (
    ("game: breakout", "game: ../../../escaped"), ("game: breakout", "game: /tmp/escaped"),
    ("game: breakout", "game: $x^{$"), ("game: breakout", "game: unheard_of"), ("game: breakout", "game: .."),
    ("seed: 0", "seed: 1e9"),
    ("n_sim: 16", "n_sim: &a [*a]"), ("n_sim: 16", "n_sim: 1000000000"), ("target_score: auto", "target_score: 1e308"),
    ("target_score: auto", "target_score: -1e300"), ("hidden: 128", "hidden: .nan"), ("env:", "env: 3\nenv:"),
    ("targets:", "targets: {}\nothers:"), ("gamma: 0.99", "gamma: 1e-320"),
    ("env:", "env: !!python/name:os.system\n  x:"),
)  # fmt: skip
ODD_NAMES = ("$\\frac$", "_", "a\nb", "<script>", "x" * 200, "[red]", "{}", "%s", "|", "`", " ", "-", "é\u202e", "\\")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row(n, evaluation_score=3.0 * n, evaluation_games=50) for n in range(1, 6)]
    summary = ended(rows, evaluation_score=15.0, best_score=15.0, updates=9)
    path = write_run(tmp_path_factory.mktemp("good") / "run", rows, summary)
    weights = np.linspace(-1, 1, 20, dtype=np.float32)
    checkpoint.add(path / "checkpoints", Checkpoint(weights, {}, asdict(Progress(updates=9)), settings(), {}))
    return path


def odd_cells(run: Path, dice: Dice) -> None:
    lines = [line.split(",") for line in (run / "metrics.csv").read_text(encoding="utf-8").splitlines()]
    for _ in range(dice.choice((1, 3, 30))):
        cells = dice.choice(lines[dice.choice((0, 1, 1)) :])
        cells[dice.randrange(len(cells))] = dice.choice(ODD_CELLS)
    text = dice.choice(("\n", "\r\n", "\n\n")).join(",".join(cells) for cells in lines)
    (run / "metrics.csv").write_bytes(text.encode())


def odd_rows(run: Path, dice: Dice) -> None:
    """Out of order, twice, too long, too short."""
    head, *lines = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()
    chosen = dice.choices(lines, k=dice.choice((0, 1, 2, 20))) + [lines[0] + ",1,2,3", "7"] * dice.randrange(2)
    dice.shuffle(chosen)
    (run / "metrics.csv").write_text("\n".join([head, *chosen]), encoding="utf-8")


def odd_summary(run: Path, dice: Dice) -> None:
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    texts = {name: json.dumps(value) for name, value in summary.items()}
    for name in dice.sample(sorted(texts), dice.choice((1, 1, 2, 5))):
        texts[name] = dice.choice(ODD_JSON)
    text = "{" + ", ".join(f'"{name}": {value}' for name, value in texts.items()) + "}"
    (run / "summary.json").write_text(text, encoding="utf-8")


def odd_setting(run: Path, dice: Dice) -> None:
    file = run / "config.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in dice.sample(ODD_SETTINGS, dice.choice((1, 1, 2))):
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")


def odd_bytes(run: Path, dice: Dice) -> None:
    file = run / dice.choice(("config.yaml", "metrics.csv", "summary.json"))
    data = bytearray(file.read_bytes())
    for _ in range(dice.choice((1, 3, 30))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    file.write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data)


def odd_file(run: Path, dice: Dice) -> None:
    """A folder, a FIFO, a device, a link to nowhere or into a circle, a file without end in the place of a file."""
    file = run / dice.choice(("config.yaml", "metrics.csv", "summary.json", "checkpoints"))
    shutil.rmtree(file) if file.is_dir() else file.unlink()
    makers: list[Callable[[], object]] = [
        file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero"), lambda: file.symlink_to("nowhere"),
        lambda: file.symlink_to(file), lambda: os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 2**40),
        lambda: None,
    ]  # fmt: skip
    dice.choice(makers)()


KINDS = (odd_cells, odd_rows, odd_summary, odd_setting, odd_bytes, odd_file)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.fault(38, "crafted run directories: report, results and export")
def test_crafted_runs_are_taken_or_refused(
    tmp_path: Path,
    good: Path,
    kind: Callable[[Path, Dice], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    happened: Happened,
) -> None:
    monkeypatch.setattr(trained_agents, "AGENTS", tmp_path / "agents")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)  # where export writes the agent
    before = most_memory()
    for number in range(COUNT // len(KINDS)):
        dice = Dice(number)
        (tmp_path / "runs").mkdir()
        run = tmp_path / "runs" / (dice.choice(ODD_NAMES) if dice.random() < 0.3 else "run")
        shutil.copytree(good, run)
        kind(run, dice)
        files = sorted(tmp_path.rglob("*"))
        out = tmp_path / "out"
        words = [f"--out={out}", "--", str(run)]
        for code in (
            report.main(words),
            results.main([str(tmp_path / "runs"), str(out / "results.md")]) if out.is_dir() else 0,
            export.main([f"--logs={out}", "--", str(run)]),
            export.main(["--", str(run)]),
        ):
            assert code in (0, 2)
        lines = [line for line in capsys.readouterr().err.splitlines() if line]
        assert all(line.startswith("dba3c: ") and len(line) < 1200 for line in lines), lines
        shutil.rmtree(out, ignore_errors=True)
        for file in here.glob("*.npz"):
            file.unlink()
        assert sorted(tmp_path.rglob("*")) == files  # nothing was written anywhere else
        shutil.rmtree(tmp_path / "runs")
    grown = most_memory() - before
    print(f"{kind.__name__}: {COUNT // len(KINDS)} directories, {grown / 1e6:.0f} MB more memory")
    assert grown < MOST_MEMORY
    happened(f"{COUNT}: each read or refused in one line, code 0 or 2; nothing is written elsewhere")
