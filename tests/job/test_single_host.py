"""What a launcher on one host is told; tests/end_to_end/test_listening.py looks at its sockets."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from dba3c.job import single_host
from dba3c.job.single_host import SETTINGS


def test_what_the_user_has_set_stays() -> None:
    assert single_host.single_host({"A": "1"}, ranks=1) == {"A": "1"} | SETTINGS
    assert single_host.single_host({"OMPI_MCA_btl": "self,tcp"}, ranks=1) == SETTINGS | {"OMPI_MCA_btl": "self,tcp"}


def test_ranks_that_cannot_share_memory_keep_tcp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not single_host.shared_memory_holds(10**9)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300_000, 300_000))
    assert single_host.single_host({}, ranks=1) == {}
    monkeypatch.undo()
    monkeypatch.setattr(single_host, "SHARED_MEMORY", str(tmp_path / "none"))
    assert single_host.single_host({}, ranks=1) == {}
