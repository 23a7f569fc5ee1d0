"""The pages about the papers' claims and about large batches are what the kept logs give."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts are found as they find each other."""
    monkeypatch.syspath_prepend(DOCS / "claims")
    monkeypatch.syspath_prepend(DOCS / "large-batch")


def run(*scores: float) -> Any:
    return import_module("evidence").Run(1, np.arange(1.0, len(scores) + 1), np.array(scores), 0.0, 0)


@pytest.mark.parametrize(("script", "name"), [("page", "claims.md"), ("large_batch", "large-batch.md")])
def test_the_page_is_what_the_kept_logs_give(script: str, name: str) -> None:
    assert import_module(script).text() == (DOCS / name).read_text(encoding="utf-8")


def test_a_score_that_is_never_reached_takes_for_ever() -> None:
    assert run(0.1, 0.5, 0.4).steps_to(0.5) == 2
    assert run(0.1, 0.4, 0.4).steps_to(0.5) == np.inf


def test_only_what_has_learned_can_collapse() -> None:
    assert run(0.0, 0.6, 1.0, 0.1, 0.1).collapsed
    assert not run(0.0, 0.6, 1.0, 0.9, 0.9).collapsed
    assert not run(0.0, 0.1, 0.0, 0.1, 0.0).collapsed


def test_asynchronous_training_is_judged_as_the_page_says() -> None:
    judge = import_module("rules").RULES["D1"]
    good, late, dead = run(0.0, *[1.0] * 9), run(*[0.0] * 5, *[1.0] * 5), run(*[0.0] * 10)
    assert judge({"async1": [good], "async64": [dead], "sync64": [good]}) == "holds"
    assert judge({"async1": [good], "async64": [late], "sync64": [good]}) == "holds in part"
    assert judge({"async1": [good], "async64": [good], "sync64": [good]}) == "does not hold here"
    assert judge({"async1": [good], "async64": [dead], "sync64": [dead]}) == "does not hold here"
