"""Runs tests/mpi on 1, 2, 3 and 4 real ranks."""

from __future__ import annotations

import pytest

from tests import jobs


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_suite(ranks: int) -> None:
    result = jobs.run(ranks, "-m", "pytest", "-q", "-x", "tests/mpi", seconds=240, DBA3C_UNDER_MPI="1")
    assert result.code == 0, result.output
    assert result.output.count(" passed") == ranks, result.output
