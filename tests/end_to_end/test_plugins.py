"""A plug-in on real ranks: it trains, is resumed and evaluated, and must be the same file on each of them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fakes import real_jobs

PAGE = (real_jobs.ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
OPTIONS = ("--preset=catch", "--algorithm.name=smooth", "--algorithm.trace=0.5", "--env.n_sim=2", "--evaluate.games=0")


def smooth(folder: Path, more: str = "") -> Path:
    """Write the algorithm that docs/extending.md shows."""
    found = re.search(r"```python\n# smooth\.py\n(.*?)```", PAGE, re.DOTALL)
    assert found
    folder.mkdir(exist_ok=True)
    (folder / "smooth.py").write_text(found[1] + more, encoding="utf-8")
    return folder / "smooth.py"


def test_two_ranks_train_and_another_program_resumes_and_evaluates(tmp_path: Path) -> None:
    plugin, run_dir = f"--plugin={smooth(tmp_path)}", f"--run-dir={tmp_path / 'run'}"
    words = ("-m", "dba3c.train", *OPTIONS, plugin, run_dir)
    first = real_jobs.run(2, *words, "--train.total_steps=200")
    assert first.code == 0, first.output
    resumed = real_jobs.run(0, *words, "--train.total_steps=400", "--algorithm.trace=0.6")
    assert "changed since then: algorithm.trace: 0.5 → 0.6" in resumed.output
    assert real_jobs.summary(tmp_path / "run")["steps"] == 400
    evaluated = real_jobs.run(0, "-m", "dba3c.evaluate", str(tmp_path / "run"), "--games=1", plugin)
    assert "catch: " in evaluated.output, evaluated.output
    without = real_jobs.run(0, "-m", "dba3c.evaluate", str(tmp_path / "run"), "--games=1")
    assert without.code == 2
    assert "was trained with the plug-in smooth; add --plugin smooth.py" in without.output


def test_ranks_with_different_files_are_refused_once(tmp_path: Path) -> None:
    one, other = smooth(tmp_path / "a"), smooth(tmp_path / "b", "# edited\n")
    words = ["-m", "dba3c.train", *OPTIONS, f"--run-dir={tmp_path / 'run'}"]
    first = real_jobs.command(1, *words, f"--plugin={one}")
    second = ["-np", "1", *real_jobs.command(0, *words, f"--plugin={other}")]
    result = real_jobs.run_words([*first, ":", *second])
    assert result.code == 2, result.output
    assert (
        len(re.findall(r"the ranks differ in plugins\.smooth: \w{16} on rank 0, \w{16} on rank 1", result.output)) == 1
    )
    assert not (tmp_path / "run").exists()
