"""Checkpoints on a disk that has room for a few of them only."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files import checkpoint
from dba3c.run_files.checkpoint import Checkpoint, encode, load, newest_first, save
from dba3c.run_files.directory import prepare_directory
from tests.conftest import Happened
from tests.run_files.test_checkpoint import state


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system with room for three of these checkpoints."""
    folder = tmp_path / "disk"
    folder.mkdir()
    room = 3 * (-(-len(encode(big(1))) // 4096) * 4096) + 16384
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def big(updates: int) -> Checkpoint:
    return state(updates)._replace(weights=np.zeros(50_000, np.float32), optimizer={})


@pytest.mark.fault(
    34,
    "disk with room for checkpoint.keep checkpoints and no more",
    "the oldest makes room for the newest at every save",
)
def test_a_disk_with_room_for_as_many_as_are_kept_and_no_more(small_disk: Path) -> None:
    for updates in range(1, 8):
        save(small_disk, big(updates), keep=3)
    assert [checkpoint.update_of(path) for path in newest_first(small_disk)] == [7, 6, 5]


def test_the_newest_good_checkpoint_is_never_removed_to_make_room(small_disk: Path) -> None:
    paths = [save(small_disk, big(updates), keep=3) for updates in (1, 2, 3)]
    for path in paths[1:]:
        path.write_bytes(bytes(len(path.read_bytes())))
    save(small_disk, big(4), keep=3)
    assert paths[0] in newest_first(small_disk)


def test_where_there_is_room_for_one_only_it_stays(small_disk: Path) -> None:
    only = save(small_disk, big(4), keep=3)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        save(small_disk, big(5), keep=3)
    assert newest_first(small_disk) == [only]
    assert load(only).progress["updates"] == 4


def fill(folder: Path) -> None:
    with (folder / "filling").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


@pytest.mark.fault(33, "disk full at the very start")
def test_a_disk_that_is_full_at_the_start_is_refused_in_one_line(small_disk: Path, happened: Happened) -> None:
    fill(small_disk)
    with pytest.raises(ConfigError, match=r"cannot be written: No space left on device; choose another directory$"):
        prepare_directory(small_disk)
    happened("refused before any simulator starts, code 2")
