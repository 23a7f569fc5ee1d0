"""Other systems, in turn with ours."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from dba3c.benchmarks import peers
from dba3c.benchmarks.launching import Bar, show


def test_ratio_is_of_medians() -> None:
    rows = peers.rows_of({"dba3c": [90.0, 300.0, 100.0], "other": [50.0, 40.0, 60.0]})
    assert [row["ratio"] for row in rows] == [1.0, 2.0]


def test_peers_take_turns_with_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a noisy minute hits both."""
    turns: list[str] = []
    monkeypatch.setattr(peers, "environment", lambda peer: turns.append(f"install {peer.script}"))
    monkeypatch.setattr(peers, "our_pace", lambda *_: turns.append("ours") or 300.0)
    monkeypatch.setattr(peers, "peer_pace", lambda *_: turns.append("theirs") or 100.0)
    result = peers.measure(Namespace(game="pong", seconds=1.0, repeats=2), Bar(disable=True))
    assert turns == ["install sb3_a2c.py", "ours", "theirs", "ours", "theirs"]
    assert result["ratio"] == {"stable-baselines3 A2C": 3.0}
    show(peers.table(result))
    output = capsys.readouterr().out
    assert "training pong" in output
    assert "3.00 ×" in output


@pytest.mark.parametrize("value", [None, "", "here", "./here"])
@pytest.mark.fault(48, "XDG_CACHE_HOME is empty or relative", "ignored: nothing of the current folder is run")
def test_peers_are_never_installed_or_run_in_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    """The XDG specification: an empty or a relative path counts as none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert peers.cache() == tmp_path / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert peers.cache() == tmp_path / "other"
