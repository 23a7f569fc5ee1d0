"""What all rooms share."""

from __future__ import annotations

from dba3c.run_files.progress import Progress


def test_only_a_full_evaluation_reaches_the_target() -> None:
    progress = Progress()
    for score, full, reached in ((400.0, False, False), (299.0, True, False), (300.0, True, True), (10.0, True, False)):
        progress.evaluated(score, 50, full, target=300.0)
        assert progress.target_reached is reached
    assert (progress.evaluation_score, progress.best_score) == (10.0, 400.0)
