"""Job arrays: the script that Slurm gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.config.messages import ConfigError
from dba3c.sweeps import array
from tests.sweeps.test_plan import planned


def test_each_task_of_the_array_is_one_training_that_has_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = planned(tmp_path, "games: catch\nseeds: 3\nranks: 2\nsettings: {slow: {optimizer.learning_rate: 1e-4}}")
    monkeypatch.setattr(type(trainings[0]), "finished", property(lambda one: one.name == "catch-slow-1"))
    text = array.script(trainings, tmp_path / "my runs", jobs=2)
    assert "#SBATCH --array=0,2%2\n#SBATCH --ntasks=2\n" in text
    assert f"#SBATCH --output='{tmp_path}/my runs/logs/task-%a.log'\n" in text
    assert "\n1)" not in text
    words = "set -- --optimizer.learning_rate=1e-4 --train.seed=2 --env.game=catch ;;"
    assert f"\n2) export RUN_DIR={trainings[2].run_dir} PRESET=auto; {words}\n" in text
    assert 'exec bash slurm/train.sbatch "$@"' in text


def test_nothing_is_submitted_if_all_have_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings = planned(tmp_path, "games: catch\nseeds: 3")
    monkeypatch.setattr(type(trainings[0]), "finished", property(lambda _: True))
    with pytest.raises(ConfigError, match="all 3 trainings have finished"):
        array.script(trainings, tmp_path, None)


def test_without_the_script_that_trains_on_nodes_nothing_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no slurm/train\.sbatch here; run this in a checkout"):
        array.submit(planned(tmp_path, "games: catch"), tmp_path / "runs", None)
