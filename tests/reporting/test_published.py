"""Published scores: of people, of chance, of the papers."""

from __future__ import annotations

import pytest
from ale_py import roms

from dba3c.reporting.published import PAPERS, RANDOM_HUMAN, human_normalised


def test_human_normalised_scores() -> None:
    assert human_normalised("breakout", 1.7) == 0.0
    assert human_normalised("breakout", 30.5) == 1.0
    assert human_normalised("pong", 20.9) == pytest.approx(41.6 / 35.3)
    assert human_normalised("casino", 1.0) is None
    published = {game for paper in PAPERS for game in paper.scores}
    assert len(RANDOM_HUMAN) == 57
    assert set(RANDOM_HUMAN) | published <= set(roms.get_all_rom_ids())
    assert all(random < human for random, human in RANDOM_HUMAN.values())
