"""Which changes a resumed run may bring."""

from __future__ import annotations

import pytest

from dba3c.config.consistency import FIXED, differences
from dba3c.config.messages import ConfigError
from tests.fakes.settings import settings

FIXED_CHANGES = (
    "env.game=pong",
    "env.profile=paper",
    "model.torso=nature",
    "model.hidden=64",
    "model.standardise=True",
    "optimizer.name=sgd",
)


@pytest.mark.parametrize("change", FIXED_CHANGES)
def test_changes_that_do_not_fit_the_saved_arrays_are_refused(change: str) -> None:
    name, wanted = change.split("=")
    with pytest.raises(ConfigError, match=f"{name}='?{wanted}'?: .*another --run-dir"):
        differences(settings(), settings(change))


def test_all_fixed_fields_are_tested() -> None:
    assert {change.split("=")[0] for change in FIXED_CHANGES} == set(FIXED)


def test_other_changes_are_reported() -> None:
    wanted = settings("optimizer.learning_rate=0.5", "env.n_sim=3", "train.target_score=none")
    assert differences(settings(), wanted) == [
        "env.n_sim: 16 → 3",
        "optimizer.learning_rate: 0.001 → 0.5",
        "train.target_score: 'auto' → 'none'",
    ]
    assert differences(wanted, wanted) == []
    assert differences(wanted, wanted.model_copy(update={"targets": {"pong": 1.0}})) == []
