"""Random numbers as pure functions: range, type, uniformity, and that they depend on their key and on nothing else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dba3c import seeds
from dba3c.seeds import EVALUATION, GAMES, action_noise, draw, game_seeds
from dba3c.types import Array

SIMULATORS = np.arange(640)  # 64 ranks × 10


def noise(seed: int = 0, update: int = 0, simulators: int = 64, steps: int = 256) -> Array:
    """[steps, simulators] in one call."""
    return action_noise(seed, update, np.arange(simulators), np.arange(steps)[:, np.newaxis])[..., 0]


def chi_square(cells: Array, count: int) -> float:
    """Σ (observed − expected)² / expected for numbers that should fall into all cells alike."""
    observed = np.bincount(cells, minlength=count)
    expected = cells.size / count
    return float(((observed - expected) ** 2 / expected).sum())


def test_noise_is_float32_below_one() -> None:
    values = noise(simulators=1000, steps=1000)
    assert values.dtype == np.float32
    assert values.shape == (1000, 1000)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert values.max() > 1.0 - 1e-5  # a million numbers come this close to both ends
    assert values.min() < 1e-5


def test_noise_uses_all_the_bits_that_float32_has() -> None:
    multiples = noise().astype(np.float64) * 2**24
    np.testing.assert_array_equal(multiples, np.floor(multiples))
    assert np.count_nonzero(multiples % 2) / multiples.size == pytest.approx(0.5, abs=0.02)


def test_largest_noise_is_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bits set: the conversion to float32 must not round up to 1."""
    monkeypatch.setattr(seeds, "draw", lambda *_: np.full(1, 2**64 - 1, np.uint64))
    ((largest,),) = action_noise(0, 0, np.arange(1), np.arange(1))
    assert largest == np.float32(1 - 2**-24)
    assert largest < 1


@pytest.mark.parametrize("along", ["simulators", "steps", "updates", "seeds"])
def test_noise_is_uniform_along_every_axis(along: str) -> None:
    numbers = np.arange(20_000)
    values = {
        "simulators": lambda: action_noise(0, 0, numbers, 0),
        "steps": lambda: action_noise(0, 0, np.zeros(1, int), numbers),
        "updates": lambda: np.concatenate([action_noise(0, int(u), np.arange(1), 0) for u in numbers]),
        "seeds": lambda: np.concatenate([action_noise(int(s), 0, np.arange(1), 0) for s in numbers]),
    }[along]()[:, 0]
    assert chi_square((values * 100).astype(int), 100) < 148.2  # 99 degrees of freedom: exceeded once in a thousand


def test_several_numbers_per_action_are_different_and_the_first_is_always_the_same() -> None:
    one, three = (action_noise(3, 5, np.arange(500), 7, count) for count in (1, 3))
    assert (one.shape, three.shape) == ((500, 1), (500, 3))
    np.testing.assert_array_equal(one[:, 0], three[:, 0])
    assert len(np.unique(three)) == three.size
    assert np.abs(np.corrcoef(three.T) - np.eye(3)).max() < 0.15


@pytest.mark.parametrize("axis", [0, 1])
def test_neighbours_are_independent(axis: int) -> None:
    """Pairs of neighbouring steps (simulators) fill a 16 × 16 grid evenly."""
    cells = (noise() * 16).astype(int)
    first, second = (
        np.take(cells, range(0, cells.shape[axis], 2), axis),
        np.take(cells, range(1, cells.shape[axis], 2), axis),
    )
    assert chi_square((first * 16 + second).ravel(), 256) < 330.6  # 255 degrees of freedom: exceeded once in a thousand


def test_every_part_of_the_key_counts() -> None:
    """All 64-bit draws of a grid of keys differ (the 24 bits that noise keeps of them may collide by chance)."""
    grid = [
        draw(seed, purpose, update, np.arange(8), np.arange(8)[:, np.newaxis]).ravel()
        for seed in range(8)
        for purpose in (GAMES, seeds.ACTIONS, EVALUATION)
        for update in range(8)
    ]
    bits = np.concatenate(grid)
    assert np.unique(bits).size == bits.size == 8 * 3 * 8 * 8 * 8


def test_noise_streams_differ_pairwise() -> None:
    base = noise()
    for other in (noise(seed=1), noise(update=1)):
        assert np.mean(base == other) < 1e-3
    for row, following in pairwise(base):
        assert np.mean(row == following) < 0.05
    for column, following in pairwise(base.T):
        assert np.mean(column == following) < 0.05
    assert np.mean(base[:64] == base[:64].T) < 0.05  # simulator and step are not interchangeable (the diagonal is 1/64)


def test_noise_belongs_to_the_simulator_not_to_its_place() -> None:
    whole = action_noise(3, 7, SIMULATORS, 11)
    for part in (slice(0, 10), slice(630, 640), slice(5, 600, 7), slice(None, None, -1)):
        np.testing.assert_array_equal(action_noise(3, 7, SIMULATORS[part], 11), whole[part])
    alone = [action_noise(3, 7, np.array([n]), 11)[0] for n in SIMULATORS]
    np.testing.assert_array_equal(alone, whole)


def test_game_seeds_belong_to_the_simulator_not_to_its_place() -> None:
    whole = game_seeds(3, GAMES, 7, SIMULATORS)
    for rank in range(64):
        np.testing.assert_array_equal(
            game_seeds(3, GAMES, 7, rank * 10 + np.arange(10)), whole[rank * 10 : rank * 10 + 10]
        )


def test_keys_do_not_depend_on_the_type_of_integer() -> None:
    expected = action_noise(5, 6, np.arange(10), 7)
    for kind in (np.int32, np.uint8, np.uint64):
        np.testing.assert_array_equal(action_noise(5, 6, np.arange(10).astype(kind), np.array(7, kind)), expected)


def test_steps_broadcast_against_simulators() -> None:
    together = noise(simulators=5, steps=4)
    for step in range(4):
        np.testing.assert_array_equal(together[step], action_noise(0, 0, np.arange(5), step)[:, 0])


def test_game_seeds_are_what_ale_takes() -> None:
    numbers = game_seeds(2**32 - 1, GAMES, 10**9, np.arange(100_000))
    assert numbers.dtype == np.int32
    assert numbers.min() >= 0
    assert numbers.max() > 2**30  # the upper half of the range is used


def test_game_seeds_are_distinct() -> None:
    """Over simulators, purposes, restarts and runs: no two games of these begin alike."""
    parts = [
        game_seeds(seed, purpose, update, np.arange(100))
        for seed in range(3)
        for purpose in (GAMES, EVALUATION)
        for update in (0, 1, 1000)
    ]
    together = np.concatenate(parts)
    assert np.unique(together).size == together.size


def test_first_numbers_never_change() -> None:
    """A published run can be repeated only as long as these hold; computed apart, with Python's integers."""
    np.testing.assert_array_equal(draw(0, 1, 2), [plain_draw(0, 1, 2)])
    np.testing.assert_array_equal(draw(2**32 - 1, 3, 10**12, 639), [plain_draw(2**32 - 1, 3, 10**12, 639)])


def plain_draw(*key: int) -> int:
    """SplitMix64's finaliser over the key, in Python's unbounded integers cut to 64 bits."""
    cut = 2**64 - 1
    state = 0
    for part in key:
        state = (state + part + 0x9E3779B97F4A7C15) & cut
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & cut
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & cut
        state ^= state >> 31
    return state
