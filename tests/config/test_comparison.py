"""The preset from which a configuration differs least, and the overrides that make up the difference."""

from __future__ import annotations

import pytest

from dba3c.config import comparison, loading


@pytest.mark.parametrize("preset", ["fast", "a2c", "ppo", "paper", "paper-pong"])
def test_a_recipe_gives_the_configuration_back(preset: str) -> None:
    changes = ["optimizer.learning_rate=0.002", "env.life_loss_terminal=true", "train.seed=4", "env.game=seaquest"]
    wanted = loading.load(preset, changes)
    found = comparison.recipe(wanted)
    assert found.preset == preset
    overrides = [f"{name}={comparison.shown(value)}" for name, value in found.overrides.items()]
    assert loading.load(found.preset, overrides) == wanted
