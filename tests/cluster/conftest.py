"""The cluster is brought up once for all its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import slurm


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    if (reason := slurm.why_not()) is not None:
        pytest.skip(reason)
    slurm.up()
    yield
    slurm.down()
