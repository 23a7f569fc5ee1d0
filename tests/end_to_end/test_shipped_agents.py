"""Agents that were exported, in whole games."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dba3c import evaluate, export, record
from dba3c.run_files import trained_agents
from tests.fakes.agents import saved, small
from tests.fakes.made_up_runs import row, write_run
from tests.fakes.real_jobs import ROOT


def test_evaluate_and_record_play_an_exported_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trained_agents, "AGENTS", tmp_path / "agents")
    run_dir, config = write_run(tmp_path / "run", [row(1)]), small("evaluate.max_frames=400")
    (run_dir / "config.yaml").write_text(config.dump(), encoding="utf-8")
    target = tmp_path / "agents" / "space_invaders.npz"
    assert export.main([str(saved(run_dir, config)), f"--out={target}"]) == 0
    file = tmp_path / "scores.json"
    assert evaluate.main(["--pretrained=space_invaders", "--games=2", f"--json={file}"]) == 0
    scores = json.loads(file.read_text(encoding="utf-8"))["scores"]
    words = ["--pretrained=space_invaders", "--games=2", "--seconds=0.5", f"--out={tmp_path / 'film.gif'}"]
    assert record.main(words) == 0
    told = ", ".join(f"episode {number + 1} with score {score:g}" for number, score in enumerate(scores))
    assert f"film.gif: {told}\n" in capfd.readouterr().out
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF89a")


def test_an_agent_that_comes_with_dba3c_still_plays_as_well(tmp_path: Path) -> None:
    """Games, pre-processing and network are what they were when it learned."""
    file = tmp_path / "scores.json"
    assert evaluate.main(["--pretrained=pong", "--games=4", "--seed=11", f"--json={file}"]) == 0
    assert min(json.loads(file.read_text(encoding="utf-8"))["scores"]) >= 18  # 20.8 ± 0.4


@pytest.mark.fault(
    55,
    "terminal without the letters, PYTHONIOENCODING=ascii",
    "the scores are shown with escapes, code 0",
)
def test_a_terminal_without_the_letters_shows_the_scores(tmp_path: Path) -> None:
    """All the way: the progress bar has letters of its own."""
    run_dir = saved(tmp_path / "run", small())
    result = subprocess.run(
        [sys.executable, "-m", "dba3c.evaluate", str(run_dir), "--games=1"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"space_invaders: " in result.stdout
    assert b"\\xb1 0.0, mean and standard deviation" in result.stdout
