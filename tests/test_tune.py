"""tune: which layouts are tried, and what is advised."""

from __future__ import annotations

import pytest

from dba3c import tune
from dba3c.benchmarks.pipeline import Layout
from dba3c.config import loading


@pytest.mark.parametrize("preset", ["fast", "ppo", "paper"])
@pytest.mark.parametrize("cores", [1, 6, 64])
def test_layouts_fit_the_cores_and_are_valid(cores: int, preset: str) -> None:
    for layout in tune.candidates(cores, preset):
        assert 1 <= layout.ranks * layout.threads <= cores
        assert loading.load(preset, [f"{key}={value}" for key, value in layout.keys.items()]).env.n_sim == layout.n_sim


def test_advice_can_be_typed() -> None:
    text = tune.advice(Layout(4, 2, "async", 16), {"steps_per_second": 1234.5}, "pong", "paac")
    assert "mpirun -np 4 --map-by slot:PE=2" in text
    assert "srun --mpi=pmix --ntasks-per-node=4 --cpus-per-task=2" in text
    assert "--actor.group_size=8" in text
    assert "env: {n_sim: 16}" in text


def test_a_time_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["--seconds=x"]) == 2
    assert "--seconds" in capsys.readouterr().err
