"""Checkpoints that somebody crafted, their checksums right: each is loaded as a sound one or passed over.

All 1,000 of them: make crafted
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dba3c.run_files.checkpoint import Checkpoint, add, load_newest
from dba3c.run_files.progress import Progress, read_progress
from tests.conftest import Happened
from tests.fakes.memory import most_memory, peak_of
from tests.fakes.settings import settings

COUNT = 1000 if os.environ.get("CRAFTED") == "all" else 200
MOST_MEMORY = 300e6  # bytes more than before
Dice = random.Random
CONFIG = settings()
TEXT = CONFIG.dump()
ODD_VALUES = (
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    float("nan"),
    float("inf"),
    "7",
    "",
    [],
    {},
    [[]],
    {"a": 1},
    "\udc80",
    "x" * 10_000,
)
ODD_YAML = (
    "", "[", "a: &a [*a]", "env: 3", "env: {game: ../../x}", "env: {game: /etc/passwd}", "env: {n_sim: 1e99}",
    "model: {hidden: 10000000000}", "train: {total_steps: 1e18}", "env: {speed: 3}", "algorithm: {name: dqn}", "\0",
    "[" * 5000, "x: " + "9" * 5000, "env: !!python/object/apply:os.mkdir [exploded]", "env: {}\nenv: {}",
)  # fmt: skip
ODD_ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.zeros(0, np.float32), lambda: np.zeros((4, 5), np.float32), lambda: np.zeros(19, np.float32),
    lambda: np.full(20, np.nan, np.float32), lambda: np.full(20, np.inf, np.float32), lambda: np.zeros(20, np.float64),
    lambda: np.zeros(20, np.int64), lambda: np.zeros(20, np.complex64), lambda: np.array(["x"] * 20),
    lambda: np.zeros(20, ">f4"), lambda: np.array(-5), lambda: np.array(np.nan), lambda: np.zeros(20, bool),
    lambda: np.array([(1, 2.0)], "i4,f4"), lambda: np.array([{}], object), lambda: np.zeros(20, np.longdouble),
)  # fmt: skip


def good(updates: int) -> Checkpoint:
    weights = np.linspace(-1, 1, 20, dtype=np.float32)
    slots = {"m": weights, "v": weights * weights, "steps": np.array(updates)}
    return Checkpoint(weights, slots, asdict(Progress(updates=updates, steps=10 * updates)), CONFIG, {})


class Content:
    """What a checkpoint's file holds, before it becomes one."""

    def __init__(self) -> None:
        state = good(9)
        self.progress: Any = dict(state.progress)
        self.config: Any = TEXT
        self.meta: Any = None
        self.arrays: dict[str, Any] = {"weights": state.weights}
        self.arrays |= {f"optimizer/{name}": slot for name, slot in state.optimizer.items()}

    def encode(self, compressed: bool = False) -> bytes:
        meta = {"progress": self.progress, "config": self.config} if self.meta is None else self.meta
        text = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
        buffer = io.BytesIO()
        write = np.savez_compressed if compressed else np.savez
        write(buffer, allow_pickle=True, **{"meta": np.frombuffer(text, np.uint8)} | self.arrays)
        return buffer.getvalue()


def odd_progress(dice: Dice) -> bytes:
    content = Content()
    content.progress[dice.choice([*content.progress, "mood", ""])] = dice.choice(ODD_VALUES)
    return content.encode()


def missing_progress(dice: Dice) -> bytes:
    content = Content()
    for name in dice.sample(sorted(content.progress), dice.randrange(1, 5)):
        del content.progress[name]
    return content.encode()


def odd_meta(dice: Dice) -> bytes:
    content = Content()
    deep = b'{"progress": ' + b"[" * dice.choice((500, 100_000))
    odd = {"progress": dice.choice(ODD_VALUES), "config": dice.choice((*ODD_VALUES, *ODD_YAML))}
    content.meta = dice.choice((deep, b"", b"{}", b"[1]", b'"x"', b"\xff\xfe", odd, {**odd, "format": 2}))
    return content.encode()


def odd_config(dice: Dice) -> bytes:
    content = Content()
    lines = content.config.splitlines()
    place = dice.randrange(len(lines))
    name = lines[place].partition(":")[0]
    lines[place] = f"{name}: {dice.choice(('.nan', '-1', '1e30', '[]', '{}', 'x', '~', '0', '&a [*a]', '!!float x'))}"
    content.config = dice.choice((*ODD_YAML, "\n".join(lines), "\n".join(lines), "\n".join(lines)))
    return content.encode()


def odd_array(dice: Dice) -> bytes:
    content = Content()
    names = [*content.arrays, "optimizer/x", "algorithm/x", "replay/x", "../x", "", "meta.npy", "weights.npy"]
    content.arrays[dice.choice(names)] = dice.choice(ODD_ARRAYS)()
    return content.encode(compressed=dice.random() < 0.2)


def missing_array(dice: Dice) -> bytes:
    content = Content()
    del content.arrays[dice.choice([*content.arrays])]
    return content.encode()


def odd_shape(dice: Dice) -> bytes:
    """Another shape or type in the header of an array: up to 3.6 TB, and more than that."""
    shape = dice.choice((b"(900000000000,)", b"(-20,)", b"(99999,)", b"(20, 0)", b"(" + b"9" * 50 + b",)", b"(1.5,)"))
    kind, new = dice.choice(((b"(20,)", shape), (b"'<f4'", b"'|O'"), (b"'<f4'", b"'<f8'"), (b"False", b"True ")))
    members = unpacked(Content().encode())
    name = dice.choice([name for name in members if name != "meta.npy"])
    members[name] = replaced(members[name], kind, new)
    return packed(members)


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    header = data[10:128].replace(old, new).rstrip()[:117].ljust(117) + b"\n"
    return data[:10] + header + data[128:]


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def odd_zip(dice: Dice) -> bytes:
    """Flags and sizes in the archive's own headers: encrypted, another method, larger than the file."""
    data = bytearray(Content().encode())
    signature, fields = dice.choice(((b"PK\3\4", (6, 8, 18, 22, 26, 28)), (b"PK\1\2", (8, 10, 20, 24, 28, 30, 42))))
    places = [place for place in range(len(data) - 4) if data[place : place + 4] == signature]
    place = dice.choice(places) + dice.choice(fields)
    data[place : place + 2] = struct.pack("<H", dice.choice((1, 8, 9, 12, 14, 99, 0xFFFF)))
    return bytes(data)


def odd_bytes(dice: Dice) -> bytes:
    data = bytearray(Content().encode())
    for _ in range(dice.choice((1, 1, 3, 30))):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.3 else data)


def bomb(dice: Dice) -> bytes:
    members = unpacked(Content().encode())
    members[dice.choice([*members])] += bytes(10**7)
    return packed(members, dice.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))


KINDS = (
    odd_progress, missing_progress, odd_meta, odd_config, odd_array, missing_array, odd_shape, odd_zip, odd_bytes,
)  # fmt: skip


def crafted(number: int) -> bytes:
    dice = Dice(number)
    return bomb(dice) if number % 50 == 49 else KINDS[number % len(KINDS)](dice)


def put(directory: Path, data: bytes) -> Path:
    path = directory / f"update-000000009.{hashlib.sha256(data).hexdigest()[:16]}.npz"
    path.write_bytes(data)
    return path


def assert_sound(state: Checkpoint) -> None:
    """What a training could resume from."""
    assert read_progress(state.progress).updates >= 0
    assert state.weights.shape == (20,)
    assert state.weights.dtype == np.float32
    for array in (state.weights, *state.optimizer.values(), *state.algorithm.values()):
        assert np.isfinite(array).all()
    assert state.optimizer.keys() == good(1).optimizer.keys()


@pytest.mark.parametrize("part", range(10))
@pytest.mark.fault(36, "crafted checkpoints with right checksums")
def test_crafted_checkpoints_are_sound_or_passed_over(tmp_path: Path, part: int, happened: Happened) -> None:
    before = most_memory()
    checkpoints = tmp_path / "run" / "checkpoints"
    add(checkpoints, good(1))
    refused = 0
    for number in range(part, COUNT, 10):
        path = put(checkpoints, crafted(number))
        warnings: list[str] = []
        state = load_newest(checkpoints, warnings.append, like=good(0))
        assert state is not None
        assert_sound(state)
        assert len(warnings) == (state.progress["updates"] == 1), warnings
        assert all(path.name in text and "\n" not in text and len(text) < 1100 for text in warnings), warnings
        refused += len(warnings)
        path.unlink()
    assert refused > 0.5 * COUNT / 10
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [next(checkpoints.iterdir()).name]
    grown = most_memory() - before
    print(f"{COUNT} checkpoints, part {part + 1} of 10: {refused} skipped, {grown / 1e6:.0f} MB more memory")
    assert grown < MOST_MEMORY
    happened(f"{COUNT}: each loaded as a sound one or skipped with a warning", lost="since the one before")


def test_no_crafted_checkpoint_takes_more_memory_than_its_size(tmp_path: Path) -> None:
    add(tmp_path, good(1))
    for number in (*range(49, COUNT, 50), *range(6, COUNT, len(KINDS))):  # bombs and odd shapes
        path = put(tmp_path, crafted(number))
        assert peak_of(lambda: load_newest(tmp_path, lambda _: None, like=good(0))) < 10e6 + 4 * path.stat().st_size
        path.unlink()
