"""Files are replaced as a whole, and no link that somebody laid is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dba3c.run_files import write_atomically


@pytest.mark.fault(
    37,
    "link under the name of a temporary file",
    "not followed: temporary files are created exclusively",
)
def test_a_link_under_a_name_that_can_be_guessed_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f".metrics.csv.{os.getpid()}.tmp").symlink_to(victim)
    write_atomically(tmp_path / "metrics.csv", b"new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "metrics.csv").read_bytes() == b"new"


def test_a_link_in_the_files_place_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "config.yaml").symlink_to(victim)
    write_atomically(tmp_path / "config.yaml", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "config.yaml").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"victim", "config.yaml"}


def test_others_may_read_what_the_users_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "summary.json", b"{}")
    finally:
        os.umask(before)
    assert (tmp_path / "summary.json").stat().st_mode & 0o777 == 0o640
