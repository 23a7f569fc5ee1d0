"""The benchmarks: their arithmetic, and one short real measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dba3c import tune
from dba3c.bench import main, peer_rows
from dba3c.benchmarks import launching, parts, pipeline, scaling
from dba3c.benchmarks.pipeline import Layout
from dba3c.config import loading

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}
# Starting a game takes as long as playing a hundred steps, and every number of games is started anew.
SMALL = ["scaling", "--game=pong", "--env.n_sim=2", "--model.hidden=16"]


def test_costs_per_step() -> None:
    lockstep = parts.microseconds_per_step(MEASURED, "lockstep", n_steps=5, batch_size=80)
    assert lockstep == {"emulate": 400, "predict": 120, "gradient": 200, "apply": 20, "all-reduce": 10}
    assert parts.microseconds_per_step(MEASURED, "async", n_steps=5, batch_size=80)["predict"] == 100


def test_the_bound_is_cores_over_the_sum_of_the_parts() -> None:
    assert pipeline.bound(Layout(2, 1, "lockstep", 16), MEASURED) == pytest.approx(2e6 / 750)
    assert pipeline.bound(Layout(1, 4, "lockstep", 16), MEASURED) == pytest.approx(4e6 / 750)


def test_layouts_that_give_a_core_the_same_work_share_their_parts() -> None:
    assert Layout(2, 1, "lockstep", 32, 20).sizes == Layout(1, 2, "lockstep", 64, 20).sizes
    assert Layout(2, 1, "lockstep", 32, 20).sizes != Layout(2, 1, "lockstep", 16, 20).sizes


def test_operations_of_the_nips_network() -> None:
    """By hand: 20·20·16·8·8·4, 9·9·32·4·4·16, 2592·128, 128·5; backward twice that, less the first layer's input."""
    layers = [1_638_400, 663_552, 331_776, 640]
    rates = parts.arithmetic(layers, {"predict": 100.0, "gradient": 200.0})
    assert rates["multiply_adds_forward"] == sum(layers)
    assert rates["predict_gflops"] == pytest.approx(2 * sum(layers) / 100e-6 / 1e9)
    assert rates["gradient_gflops"] == pytest.approx(2 * (3 * sum(layers) - layers[0]) / 200e-6 / 1e9)


@pytest.mark.parametrize("preset", ["fast", "ppo", "paper"])
@pytest.mark.parametrize("cores", [1, 2, 6, 64])
def test_tune_tries_layouts_that_fit_and_are_valid(cores: int, preset: str) -> None:
    for layout in tune.candidates(cores, preset):
        assert 1 <= layout.ranks * layout.threads <= cores
        assert loading.load(preset, [f"{key}={value}" for key, value in layout.keys.items()]).env.n_sim == layout.n_sim


def test_advice_can_be_typed() -> None:
    text = tune.advice(Layout(4, 2, "async", 16), {"steps_per_second": 1234.5}, "pong", "paac")
    assert "mpirun -np 4 --map-by slot:PE=2" in text
    assert "srun --mpi=pmix --ntasks-per-node=4 --cpus-per-task=2" in text
    assert "--actor.group_size=8" in text
    assert "env: {n_sim: 16}" in text


def test_ratio_is_of_medians() -> None:
    rows = peer_rows({"dba3c": [90.0, 300.0, 100.0], "other": [50.0, 40.0, 60.0]})
    assert [row["ratio"] for row in rows] == [1.0, 2.0]


def test_a_real_measurement_fills_a_row() -> None:
    layout = Layout(2, 1, "lockstep", 2)
    summary = pipeline.measure(layout, "pong", "paac", steps=400)
    row = pipeline.row(layout, [summary, summary], [MEASURED, MEASURED])
    assert row["fraction_of_bound"] == pytest.approx(summary["steps_per_second"] / pipeline.bound(layout, MEASURED))
    assert row["shares"]["env"] > 0.05
    assert sum(row["shares"].values()) == pytest.approx(1.0)


def test_scaling_counts() -> None:
    assert [scaling.counts(size) for size in (1, 4, 6)] == [[1], [1, 2, 4], [1, 2, 4, 6]]


def test_scaling_on_this_machine(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Started alone, it takes a rank for each core."""
    json_file, picture = tmp_path / "scaling.json", tmp_path / "scaling.png"
    assert main([*SMALL, "--seconds=0.5", "--hidden=32", f"--json={json_file}", f"--plot={picture}"]) == 0
    result = json.loads(json_file.read_text(encoding="utf-8"))
    rows = {(row["scaling"], row["ranks"]): row for row in result["rows"] if row["scaling"] != "alone"}
    cores = launching.cores()
    assert rows.keys() == {(kind, count) for kind in ("weak", "strong") for count in scaling.counts(cores)}
    assert rows["strong", 1]["games_per_rank"] == cores * rows["strong", cores]["games_per_rank"]
    assert all(0 < row["efficiency"] < 1.5 for row in rows.values())
    assert result["hidden"][0]["hidden"] == 32
    assert result["allreduce_milliseconds"]["mpi"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "efficiency" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["scaling", "--actor.nsteps=20"], "actor.n_steps"),
        (["scaling", "--game=brekout"], "breakout"),
        (["scaling", "--comm.transport=horovod"], "compares the transports"),
        (["predict", "--comm.n_backup=1"], "comm.strategy=backup"),
        (["pipeline", "--actor.n_steps=20"], "not understood"),
    ],
)
def test_bad_input_is_told_before_any_rank_starts(
    words: list[str], remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    output = capfd.readouterr().err
    assert remedy in output
    assert output.count("dba3c bench:") == len(output.splitlines()) == 1


def test_scaling_with_backup_workers(tmp_path: Path) -> None:
    """One rank alone has no backup; the agent of an earlier measurement starts again with the communicator's number."""
    words = [*SMALL, "--seconds=0.1", f"--json={tmp_path / 'scaling.json'}"]
    assert main([*words, "--comm.strategy=backup", "--comm.n_backup=1"]) == 0
    rows = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["points_per_second"] > 0 for row in rows)


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speed"]) == 2
    assert "speed" in capsys.readouterr().err
    assert tune.main(["--seconds=x"]) == 2
