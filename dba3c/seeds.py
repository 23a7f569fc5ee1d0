"""Random numbers as pure functions of what they are for: they do not depend on the job's layout or its history."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dba3c.types import Array

# What a number is drawn for.
GAMES = 1
ACTIONS = 2
EVALUATION = 3
WEIGHTS = 4
ORDER = 5
REBUILT = 6
EVALUATION_ACTIONS = 7
SAMPLES = 8
STARTS = 9


def mix(x: Array) -> Array:
    """The finaliser of SplitMix64: every bit of the input moves every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def draw(*key: int | Array) -> Array:
    """64 random bits for each key; the parts broadcast against each other."""
    state = np.zeros(1, np.uint64)
    for part in key:
        state = mix(state + np.asarray(part).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return state


def game_seeds(seed: int, purpose: int, update: int, simulators: Array) -> Array:
    """Seeds of the emulators that start after `update`: non-negative int32, as ALE wants them."""
    return (draw(seed, purpose, update, simulators) >> np.uint64(33)).astype(np.int32)


def weight_seeds(seed: int) -> Iterator[int]:
    """Seeds of the initialisers of one network, tensor by tensor."""
    for tensor in itertools.count():
        yield int(draw(seed, WEIGHTS, tensor)[0] >> np.uint64(33))


def action_noise(
    seed: int, update: int, simulators: Array, step: int | Array, count: int = 1, purpose: int = ACTIONS
) -> Array:
    """Draw `count` uniform float32 in [0, 1) for each simulator's step since the episodes started after `update`.

    [B] → [B, count]
    """
    first = draw(seed, purpose, update, simulators, step)
    more = [draw(seed, purpose, update, simulators, step, number) for number in range(1, count)]
    bits = np.stack([first, *more], axis=-1) >> np.uint64(40)
    return bits.astype(np.float32) * np.float32(2**-24)


def time_order(seed: int, update: int, number: int, steps: int) -> Array:
    """The order in which the `number`th pass over the segment that follows `update` takes its time steps."""
    return np.argsort(draw(seed, ORDER, update, number, np.arange(steps)))
