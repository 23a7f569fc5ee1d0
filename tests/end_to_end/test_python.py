"""The Python API as docs/python.md shows it: every example runs as it is written, alone and under mpirun."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fakes import real_jobs

PAGE = (real_jobs.ROOT / "docs" / "python.md").read_text(encoding="utf-8")
PLAY, REMEMBER, SAVE, ONNX, TRAIN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(f"import os\nos.chdir({str(folder)!r})\n{text}", encoding="utf-8")
    return str(path)


def test_the_agent_wins_in_the_wrappers_of_gymnasium(tmp_path: Path) -> None:
    result = real_jobs.run(0, script(tmp_path, PLAY))
    assert result.code == 0, result.output
    found = re.search(r"Pong: (\S+)", result.output)
    assert found, result.output
    assert float(found[1]) >= 20
    assert "oneDNN" not in result.output, "TensorFlow loads quietly"


def test_an_agent_plays_in_simulators_of_its_own(tmp_path: Path) -> None:
    result = real_jobs.run(0, script(tmp_path, REMEMBER))
    assert (result.code, result.output) == (0, "")


def test_an_agent_is_taken_to_programs_without_us(tmp_path: Path) -> None:
    export = 'import dba3c.__main__\nassert dba3c.__main__.main("export pong --out pong.onnx".split()) == 0\n'
    result = real_jobs.run(0, script(tmp_path, SAVE + export + ONNX))
    assert result.code == 0, result.output
    assert "best action: [" in result.output
    assert (tmp_path / "pong.keras").stat().st_size > 2e6


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_training_ends_when_the_callback_says_so(tmp_path: Path, ranks: int) -> None:
    result = real_jobs.run(ranks, script(tmp_path, TRAIN))
    assert result.code == 0, result.output
    assert "asked to stop by the callback" in result.output
    steps, value_loss, rows = re.findall(r"^(\d+) (\S+) (\d+)$", result.output, re.MULTILINE)[-1]
    assert 2_000 <= int(steps) <= 2_400
    assert float(value_loss) > 0
    assert int(rows) >= 1


def test_trainings_follow_each_other_and_bad_input_is_an_exception(tmp_path: Path) -> None:
    text = """
import dba3c
tiny = dict(env={"n_sim": 2}, evaluate={"games": 0})
first = dba3c.train("catch", run_dir="a", train={"total_steps": 100}, **tiny)
second = dba3c.train("catch", run_dir="b", init="a", train={"total_steps": 100}, **tiny)
try:
    dba3c.train("catch", run_dir="c", train={"total_step": 100})
except dba3c.ConfigError as error:
    print("refused:", error)
def fails(progress, figures):
    raise KeyError("mine")
try:
    dba3c.train("catch", run_dir="d", callback=fails, **tiny)
except KeyError as error:
    print("raised:", error)
print(first.summary["updates"], second.summary["updates"], dba3c.train.parser().prog)
"""
    result = real_jobs.run(0, script(tmp_path, text))
    assert result.code == 0, result.output
    assert "refused: train.total_step: no such key; did you mean train.total_steps?" in result.output
    assert "raised: 'mine'" in result.output
    assert "starting from the weights of a, which were trained for 10 updates, 100 steps" in result.output
    assert result.output.splitlines()[-1] == "10 10 dba3c train"


def test_a_script_under_mpirun_is_refused_once(tmp_path: Path) -> None:
    result = real_jobs.run(2, script(tmp_path, 'import dba3c\ndba3c.train("catch", train={"total_step": 1})'))
    assert result.code == 2, result.output
    assert result.output.count("dba3c: train.total_step: no such key") == 1
    assert "Traceback" not in result.output
