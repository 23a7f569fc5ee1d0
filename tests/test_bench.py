"""The benchmarks: their arithmetic, and one short real measurement."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from dba3c import tune
from dba3c.bench import main, parse
from dba3c.benchmarks import launching, layouts, parts, peers, pipeline, scaling
from dba3c.benchmarks.layouts import Allocation
from dba3c.benchmarks.screen import Bar, show
from dba3c.config import loading
from dba3c.types import PARTS

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}
# Starting a simulator takes as long as a hundred of its steps, and every measurement starts new ones.
SMALL = ["scaling", "--game=pong", "--env.n_sim=2", "--model.hidden=16"]


def test_costs_per_step() -> None:
    lockstep = parts.microseconds_per_step(MEASURED, "lockstep", n_steps=5, batch_size=80)
    assert lockstep == {"emulate": 400, "predict": 120, "gradient": 200, "apply": 20, "all-reduce": 10}
    assert parts.microseconds_per_step(MEASURED, "async", n_steps=5, batch_size=80)["predict"] == 100


def test_the_bound_is_cores_over_the_sum_of_the_parts() -> None:
    assert pipeline.bound(Allocation(2, 1, "lockstep", 16), MEASURED) == pytest.approx(2e6 / 750)
    assert pipeline.bound(Allocation(1, 4, "lockstep", 16), MEASURED) == pytest.approx(4e6 / 750)


def test_layouts_that_give_a_core_the_same_work_share_their_parts() -> None:
    assert Allocation(2, 1, "lockstep", 32, 20).sizes == Allocation(1, 2, "lockstep", 64, 20).sizes
    assert Allocation(2, 1, "lockstep", 32, 20).sizes != Allocation(2, 1, "lockstep", 16, 20).sizes


def test_torsos_are_measured_with_the_preset_that_uses_them() -> None:
    assert [parts.preset_with(torso) for torso in ("nips", "nature", "ba3c")] == ["paac", "paac", "paper"]


def test_parts_are_shown_by_the_names_that_the_parts_of_time_have_elsewhere() -> None:
    assert list(parts.WORDS) == list(parts.microseconds_per_step(MEASURED, "async", n_steps=5, batch_size=80))
    assert sorted(parts.WORDS.values()) == sorted(set(PARTS) - {"play"})  # play: waiting for the two before it


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
    for allocation in layouts.candidates(cores, preset):
        assert 1 <= allocation.ranks * allocation.threads <= cores
        config = loading.load(preset, [f"{key}={value}" for key, value in allocation.keys.items()])
        assert config.env.n_sim == allocation.n_sim
        assert config.batch_size * allocation.ranks == allocation.steps_per_update


def test_a_trial_is_long_enough_for_updates_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One update of PPO needs more steps than a few seconds would give."""
    started: list[list[str]] = []

    def run(_ranks: int, _module: str, words: list[str], _threads: int) -> None:
        started.append(words)
        Path(words[words.index("--run-dir") + 1], "summary.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(launching, "run", run)
    for steps in (1000, 10**6):
        layouts.trial(Allocation(2, 1, "lockstep", 32, 128), "pong", "ppo", steps)
    assert "--train.total_steps=32768" in started[0]
    assert "--train.total_steps=1000000" in started[1]


def test_advice_can_be_typed() -> None:
    text = layouts.advice(Allocation(4, 2, "async", 16), {"steps_per_second": 1234.5}, "pong", "paac")
    assert "mpirun -np 4 --map-by slot:PE=2" in text
    assert "srun --mpi=pmix --ntasks-per-node=4 --cpus-per-task=2" in text
    assert "--actor.group_size=8" in text
    assert "env: {n_sim: 16}" in text


def test_ratio_is_of_medians() -> None:
    rows = peers.rows_of({"dba3c": [90.0, 300.0, 100.0], "other": [50.0, 40.0, 60.0]})
    assert [row["ratio"] for row in rows] == [1.0, 2.0]


def test_peers_take_turns_with_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a noisy minute hits both."""
    turns: list[str] = []
    monkeypatch.setattr(peers, "environment", lambda peer: turns.append(f"install {peer.script}"))
    monkeypatch.setattr(peers, "our_pace", lambda *_: turns.append("ours") or 300.0)
    monkeypatch.setattr(peers, "peer_pace", lambda *_: turns.append("theirs") or 100.0)
    result = peers.measure(Namespace(game="pong", seconds=1.0, repeats=2), Bar(disable=True))
    assert turns == ["install sb3_a2c.py", "ours", "theirs", "ours", "theirs"]
    assert result["ratio"] == {"stable-baselines3 A2C": 3.0}
    show(peers.table(result))
    output = capsys.readouterr().out
    assert "training pong" in output
    assert "3.00 ×" in output


def test_layouts_take_turns_after_their_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each round measures the parts again; the best row is the result's own."""
    turns: list[str] = []
    summary = {"steps_per_second": 1000.0, "shares": {"env": 0.6, "wait": 0.4, "apply": 0.0}}
    monkeypatch.setattr(launching, "cores", lambda: 2)
    monkeypatch.setattr(parts, "preset_row", lambda *_: turns.append("parts") or MEASURED)
    monkeypatch.setattr(pipeline, "trial", lambda *words: turns.append(words[0].kind) or summary)
    options = Namespace(game="pong", preset="fast", seconds=1.0, repeats=2)
    result = pipeline.measure(options, Bar(disable=True))
    assert turns == 2 * (3 * ["parts"] + ["lockstep", "lockstep", "lockstep", "async", "lockstep"])
    assert result["steps_per_second"] == 1000.0
    show(pipeline.table(result))
    output = capsys.readouterr().out
    assert all(words in output for words in ("training pong", "16 simulators", "60%", "1,000-1,000"))
    assert "apply" not in output


def test_a_real_measurement_fills_a_row() -> None:
    allocation = Allocation(2, 1, "lockstep", 2)
    summary = layouts.trial(allocation, "pong", "paac", steps=400)
    row = pipeline.row(allocation, [summary, summary], [MEASURED, MEASURED])
    bound = pipeline.bound(allocation, MEASURED)
    assert row["fraction_of_bound"] == pytest.approx(summary["steps_per_second"] / bound)
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
    output = capfd.readouterr().out
    assert all(words in output for words in ("efficiency", "simulators per rank", "samples/s", "hidden units"))


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["scaling", "--actor.nsteps=20"], "actor.n_steps"),
        (["scaling", "--game=brekout"], "breakout"),
        (["scaling", "--comm.transport=horovod"], "compares the transports"),
        (["predict", "--comm.n_backup=1"], "comm.strategy=backup"),
        (["pipeline", "--actor.n_steps=20"], "not understood"),
        (["pipeline", "--preset=ppo"], "paper, paper-pong, paac, fast"),
        (["predict", "--preset=papper"], "paper"),
    ],
)
def test_bad_input_is_refused_before_any_rank_starts(
    words: list[str], remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    output = capfd.readouterr().err
    assert remedy in output
    assert output.count("dba3c bench:") == len(output.splitlines()) == 1


@pytest.mark.parametrize("command", ["pipeline", "scaling", "predict"])
def test_every_preset_that_makes_one_update_from_a_segment_can_be_measured(command: str) -> None:
    for preset in set(loading.preset_names()) - {"ppo"}:
        assert parse([command, f"--preset={preset}"]).preset == preset


def test_scaling_with_backup_workers(tmp_path: Path) -> None:
    """One rank alone has no backup; the agent of an earlier measurement starts again at the strategy's first update."""
    words = [*SMALL, "--seconds=0.1", f"--json={tmp_path / 'scaling.json'}"]
    assert main([*words, "--comm.strategy=backup", "--comm.n_backup=1"]) == 0
    rows = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["points_per_second"] > 0 for row in rows)


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speed"]) == 2
    assert "speed" in capsys.readouterr().err
    assert tune.main(["--seconds=x"]) == 2


@pytest.mark.parametrize(("words", "remedy"), [("--game=brekout", "breakout"), ("--preset=fastt", "fast")])
def test_tune_refuses_bad_input_before_any_rank_starts(
    words: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([words]) == 2
    assert remedy in capsys.readouterr().err
