"""A saved progress: read with its types and ranges, or refused."""

from __future__ import annotations

import pytest

from dba3c.run_files.progress import NewerVersionError, Progress, read_progress


def test_what_an_older_version_did_not_have_gets_its_default() -> None:
    assert read_progress({"updates": 7, "steps": 70}) == Progress(updates=7, steps=70)


def test_a_target_that_version_0_1_reached_counts_as_one_evaluation() -> None:
    assert read_progress({"updates": 7, "target_reached": True}).reached_in_a_row == 1


def test_what_only_a_newer_version_has_is_refused_by_name() -> None:
    with pytest.raises(NewerVersionError, match="mood"):
        read_progress({"updates": 7, "steps": 70, "mood": "good"})


@pytest.mark.parametrize(
    "damaged",
    [
        {}, [], None, "updates", {"updates": "7"}, {"updates": True}, {"updates": -1}, {"updates": 7.5},
        {"updates": 10**30}, {"updates": 7, "seconds": float("nan")}, {"updates": 7, "seconds": "long"},
        {"updates": 7, "evaluation_score": float("inf")}, {"updates": 7, "target_reached": 1},
        {"updates": 7, "best_score": [1]}, {"updates": None}, {"updates": 7, "steps": 10**18},
    ],
)  # fmt: skip
def test_damage_is_told(damaged: object) -> None:
    with pytest.raises(ValueError, match="progress"):
        read_progress(damaged)
