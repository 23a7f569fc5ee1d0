"""Jobs of which one rank is another program: refused before any game starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_BAD_INPUT
from tests.conftest import Happened
from tests.fakes import real_jobs


def mpirun_with_a_stranger(run_dir: Path, words: list[str], stranger: list[str]) -> real_jobs.Result:
    """Two ranks run `words`, a third one `stranger`."""
    separated = [*real_jobs.command(2, *words), ":", "-np", "1", *stranger]
    return real_jobs.run_words([*separated, f"--run-dir={run_dir}"])


@pytest.mark.fault(13, "another setting on one rank")
def test_another_option_on_one_rank_is_refused(tmp_path: Path, happened: Happened) -> None:
    words = ["-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path / 'run'}"]
    result = mpirun_with_a_stranger(tmp_path / "run", words, [sys.executable, *words, "--algorithm.gamma=0.9"])
    assert result.code == EXIT_BAD_INPUT, result.output
    assert result.output.count("dba3c: ") == 1, result.output
    assert "algorithm.gamma: 0.99 on ranks 0-1, 0.9 on rank 2" in result.output
    assert not (tmp_path / "run").exists()
    happened("refused before any game, rank and both values named, code 2")


@pytest.mark.fault(13, "another version on one rank")
def test_another_version_on_one_rank_is_refused(tmp_path: Path, happened: Happened) -> None:
    real_jobs.other_version(tmp_path)
    words = ["-m", "dba3c.train", *real_jobs.TINY, f"--run-dir={tmp_path / 'run'}"]
    stranger = ["env", f"--chdir={tmp_path}", f"PATH={os.environ['PATH']}", sys.executable, *words]
    result = mpirun_with_a_stranger(tmp_path / "run", words, stranger)
    assert result.code == EXIT_BAD_INPUT, result.output
    assert "the ranks differ in dba3c: " in result.output
    assert "on rank 2" in result.output
    assert not (tmp_path / "run").exists()
    happened("refused before any game, rank and both versions named, code 2")
