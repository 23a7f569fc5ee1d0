"""The parts of training alone: costs per step, and the arithmetic of networks."""

from __future__ import annotations

import pytest

from dba3c.benchmarks import parts
from dba3c.timings import PARTS

MEASURED = {
    "microseconds": {"emulate": 400.0, "predict": 100.0, "gradient": 200.0, "apply": 1600.0, "all-reduce": 800.0}
}


def test_costs_per_step() -> None:
    lockstep = parts.microseconds_per_step(MEASURED, "lockstep", n_steps=5, batch_size=80)
    assert lockstep == {"emulate": 400, "predict": 120, "gradient": 200, "apply": 20, "all-reduce": 10}
    assert parts.microseconds_per_step(MEASURED, "async", n_steps=5, batch_size=80)["predict"] == 100


def test_torsos_are_measured_with_the_preset_that_uses_them() -> None:
    assert [parts.preset_with(torso) for torso in ("nips", "nature", "ba3c")] == ["a2c", "paac-nature", "paper"]


def test_parts_are_shown_by_the_names_that_the_parts_of_time_have_elsewhere() -> None:
    assert list(parts.WORDS) == list(parts.microseconds_per_step(MEASURED, "async", n_steps=5, batch_size=80))
    assert sorted(parts.WORDS.values()) == sorted(set(PARTS) - {"play", "sample"})  # play: waiting for two of them


def test_operations_of_the_nips_network() -> None:
    """By hand: 20·20·16·8·8·4, 9·9·32·4·4·16, 2592·128, 128·5; backward twice that, less the first layer's input."""
    layers = [1_638_400, 663_552, 331_776, 640]
    rates = parts.arithmetic(layers, {"predict": 100.0, "gradient": 200.0})
    assert rates["multiply_adds_forward"] == sum(layers)
    assert rates["predict_gflops"] == pytest.approx(2 * sum(layers) / 100e-6 / 1e9)
    assert rates["gradient_gflops"] == pytest.approx(2 * (3 * sum(layers) - layers[0]) / 200e-6 / 1e9)
