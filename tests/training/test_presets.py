"""The presets learn as they always did: losses and gradient norms of their first updates.

They are those of version 0.1. On one machine even the weights after 200 updates are the same, bit for bit, but other
processors round differently, so here the first figures must agree to a tolerance.

python -m tests.training.test_presets prints those of the code as it is.
"""

from __future__ import annotations

import pprint

import pytest

from dba3c.config import loading
from dba3c.run_files.progress import Progress
from dba3c.timings import Timings
from dba3c.training import build, loop
from tests.fakes.loopback import Loopback

UPDATES = 3
FIGURES = ("policy_loss", "value_loss", "entropy", "gradient_norm")
PRESETS = {
    "paper-pong": ("actor.kind=lockstep", "train.batch_size=auto"),  # at epsilon 1e-8 rounding alone moves weights
    "a2c": ("env.game=breakout",),
    "fast": ("env.game=breakout",),
    "ppo": ("env.game=pong", "actor.n_steps=32"),
}
RECORDED = {  # FIGURES of each update
    "paper-pong": [
        (-0.0147771, 7.69689e-05, 1.79156, 0.0135851),
        (0.00243753, 1.2637e-06, 1.79146, 0.0031833),
        (0.00227113, 1.05227e-06, 1.79146, 0.00310847),
    ],
    "a2c": [
        (0.0272042, 0.00153689, 1.38629, 0.189113),
        (-0.03761, 0.000593451, 1.38615, 0.371643),
        (0.000984116, 9.81157e-05, 1.38596, 0.0119956),
    ],
    "fast": [
        (0.0226613, 0.0014809, 1.38629, 0.167762),
        (-0.0262104, 0.000405004, 1.38614, 0.264713),
        (0.0103886, 0.000100198, 1.38605, 0.101029),
    ],
    "ppo": [
        (0.00867425, 0.0304788, 1.79171, 4.02679),
        (-0.0591783, 3.02788, 1.79113, 89.509),
        (-0.0855254, 1.70784, 1.78995, 64.4249),
    ],
}


def first_updates(preset: str) -> list[tuple[float, ...]]:
    """The mean of each figure in each of the first updates."""
    config = loading.load(preset, PRESETS[preset])
    agent, timings, progress = build.agent(config), Timings(), Progress()
    strategy = build.strategy(config, Loopback(), agent, build.optimizer(config, agent), timings, progress)
    actor = build.actor(config, agent, 0, 1, timings)
    actor.restart(0)
    total = config.train.total_steps
    updates = loop.updates(actor, agent, strategy, progress, total, lambda: False, timings)
    found = [next(updates) for _ in range(UPDATES)]
    actor.close()
    return [tuple(update.sums[name] / update.samples for name in FIGURES) for update in found]


@pytest.mark.parametrize("preset", PRESETS)
def test_first_updates_are_those_of_version_0_1(preset: str) -> None:
    for number, (found, expected) in enumerate(zip(first_updates(preset), RECORDED[preset], strict=True)):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-6), f"update {number + 1}"


if __name__ == "__main__":
    pprint.pprint({preset: first_updates(preset) for preset in PRESETS}, sort_dicts=False)
