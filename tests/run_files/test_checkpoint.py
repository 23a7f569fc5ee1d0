"""Checkpoints: exact, whole or not at all, verified, never executed."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError
from dba3c.run_files.checkpoint import Checkpoint, encode, load, load_newest, newest_first, save
from dba3c.run_files.progress import Progress
from tests.fakes.settings import settings


def state(updates: int = 7, *overrides: str) -> Checkpoint:
    draw = np.random.default_rng(updates)
    weights = draw.normal(size=100).astype(np.float32)
    weights[:3] = np.nextafter(np.float32(1), np.float32(2)), -0.0, 1e-42  # what a detour over text would round
    slots = {"m": draw.normal(size=100).astype(np.float32), "steps": np.array(updates)}
    progress = asdict(Progress(updates=updates, seconds=0.1 + 0.2, target_reached=True))
    algorithm = {"target": draw.normal(size=100).astype(np.float32), "scale": np.array(0.1 + 0.2)}
    return Checkpoint(weights, slots, progress, settings(*overrides), algorithm)


def assert_equal(one: Checkpoint, other: Checkpoint) -> None:
    assert one.weights.dtype == other.weights.dtype
    assert one.weights.tobytes() == other.weights.tobytes()
    for mine, theirs in ((one.optimizer, other.optimizer), (one.algorithm, other.algorithm)):
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name], strict=True)
    assert (one.progress, one.config) == (other.progress, other.config)


def load_quietly(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    warnings: list[str] = []
    return load_newest(directory, warnings.append), warnings


def put(directory: Path, data: bytes, updates: int = 9) -> Path:
    """A file that carries its right checksum."""
    path = directory / f"update-{updates:09d}.{hashlib.sha256(data).hexdigest()[:16]}.npz"
    path.write_bytes(data)
    return path


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=True, **arrays)
    return buffer.getvalue()


def test_round_trip_is_exact(tmp_path: Path) -> None:
    saved = state(7, "env.game=pong", "optimizer.learning_rate=0.00123", "train.target_score=none")
    path = save(tmp_path / "new" / "folder", saved, keep=3)
    assert_equal(load(path), saved)
    loaded, warnings = load_quietly(path.parent)
    assert loaded is not None
    assert_equal(loaded, saved)
    assert not warnings


def test_a_checkpoint_of_version_0_1_keeps_its_advantage_scale(tmp_path: Path) -> None:
    """It stood in the progress there, whatever the algorithm."""
    saved = state()
    old = saved._replace(progress=saved.progress | {"advantage_scale": 0.125}, algorithm={})
    loaded = load(put(tmp_path, encode(old)))
    assert loaded.progress == saved.progress
    assert loaded.algorithm == {"advantage_scale": 0.125}


def test_no_checkpoint_yet(tmp_path: Path) -> None:
    assert load_quietly(tmp_path) == (None, [])
    assert load_quietly(tmp_path / "missing") == (None, [])


def test_the_newest_are_kept(tmp_path: Path) -> None:
    (tmp_path / "notes.npz").write_bytes(b"not ours")
    for updates in (5, 10, 100, 1000):
        save(tmp_path, state(updates), keep=2)
    assert [load(path).progress["updates"] for path in newest_first(tmp_path)] == [1000, 100]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("keep", [1, 2])
def test_a_save_never_removes_what_it_has_just_written(tmp_path: Path, keep: int) -> None:
    """A run that fell back to an older checkpoint saves below the damaged newer ones."""
    for updates in (30, 40):
        save(tmp_path, state(updates), keep=2)
    for path in newest_first(tmp_path):
        path.write_bytes(b"damaged")
    saved = save(tmp_path, state(25), keep)
    assert saved.exists()
    loaded, _ = load_quietly(tmp_path)
    assert loaded is not None
    assert loaded.progress["updates"] == 25


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_checkpoint_and_nothing_else(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = save(tmp_path, state(1), keep=1)

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync", fail) if broken == "fsync" else (Path, "replace", fail)))
        with pytest.raises(OSError, match="no space left"):
            save(tmp_path, state(2), keep=1)
    assert list(tmp_path.iterdir()) == [old]
    assert_equal(load(old), state(1))


def test_a_checkpoint_gets_its_name_when_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Path]] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        seen.append(newest_first(tmp_path))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    path = save(tmp_path, state(3), keep=1)
    assert seen == [[], [path]]  # first the file under another name, then the folder that holds the new name


def damage(path: Path, how: str, where: float) -> None:
    data = bytearray(path.read_bytes())
    place = min(int(where * len(data)), len(data) - 1)
    data[place] ^= 1 << 3
    if how == "truncate":
        del data[place:]
    path.write_bytes(data)


@pytest.mark.parametrize("where", [0.0, 0.02, 0.3, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("how", ["truncate", "flip"])
def test_a_damaged_newest_checkpoint_is_passed_over_with_a_warning(tmp_path: Path, how: str, where: float) -> None:
    save(tmp_path, state(1), keep=3)
    newest = save(tmp_path, state(2), keep=3)
    damage(newest, how, where)
    with pytest.raises(ValueError, match="damaged"):
        load(newest)
    loaded, warnings = load_quietly(tmp_path)
    assert loaded is not None
    assert_equal(loaded, state(1))
    assert len(warnings) == 1
    assert newest.name in warnings[0]


def test_whole_content_under_the_wrong_name_is_damage_too(tmp_path: Path) -> None:
    """The archive's own checksums are fine here; only ours tells that this is not what was saved."""
    older, newest = (save(tmp_path, state(updates), keep=3) for updates in (1, 2))
    newest.write_bytes(older.read_bytes())
    with pytest.raises(ValueError, match="checksum"):
        load(newest)


def test_all_damaged_is_an_error_that_names_the_run_directory(tmp_path: Path) -> None:
    for updates in (1, 2):
        damage(save(tmp_path / "checkpoints", state(updates), keep=3), "flip", 0.5)
    warnings: list[str] = []
    with pytest.raises(ConfigError, match=f"--run-dir={tmp_path}: none of its 2 checkpoints"):
        load_newest(tmp_path / "checkpoints", warnings.append)
    assert len(warnings) == 2


class Bomb:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._mark),)


@pytest.mark.parametrize("place", ["weights", "meta", "optimizer/m"])
def test_nothing_is_ever_unpickled(tmp_path: Path, place: str) -> None:
    mark = tmp_path / "exploded"
    meta = json.dumps({"progress": {"updates": 9}, "config": settings().dump()})
    slots = {"weights": np.zeros(3, np.float32), "optimizer/m": np.zeros(3, np.float32)}
    good = slots | {"meta": np.frombuffer(meta.encode(), np.uint8)}
    assert load(put(tmp_path, npz(**good))).progress["updates"] == 9
    path = put(tmp_path, npz(**good | {place: np.array([Bomb(mark)], object)}), updates=10)
    with pytest.raises(ValueError, match="not a checkpoint"):
        load(path)
    load_quietly(tmp_path)
    assert not mark.exists()


def meta_only(text: str) -> bytes:
    return npz(weights=np.zeros(3, np.float32), meta=np.frombuffer(text.encode(), np.uint8))


def npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


STRANGERS = {
    "empty": b"",
    "text": b"no archive at all",
    "one array": npy(),
    "no meta": npz(weights=np.zeros(3)),
    "meta no json": meta_only("{"),
    "meta of another kind": meta_only("[]"),
    "config no yaml": meta_only(json.dumps({"progress": {"updates": 1}, "config": "a: [b"})),
    "no progress": meta_only(json.dumps({"config": settings().dump()})),
}


@pytest.mark.parametrize("content", STRANGERS.values(), ids=STRANGERS.keys())
def test_what_is_no_checkpoint_of_ours_is_passed_over(tmp_path: Path, content: bytes) -> None:
    save(tmp_path, state(1), keep=3)
    with pytest.raises(ValueError, match="not a checkpoint"):
        load(put(tmp_path, content))
    loaded, warnings = load_quietly(tmp_path)
    assert loaded is not None
    assert loaded.progress["updates"] == 1
    assert len(warnings) == 1


NEWER = {
    "configuration": {"progress": {"updates": 1}, "config": "env: {speed: 3}"},
    "progress": {"progress": {"updates": 1, "mood": "good"}, "config": ""},
    "anything": {"progress": {"updates": 1}, "config": settings().dump(), "format": 2},
}


@pytest.mark.parametrize("meta", NEWER.values(), ids=NEWER.keys())
@pytest.mark.fault(36, "checkpoint of a newer version", "refused; the message says so and names what is new")
def test_a_checkpoint_of_a_newer_version_says_so(tmp_path: Path, meta: object) -> None:
    with pytest.raises(ValueError, match=r"was written by a newer version of dba3c, .*(speed|mood|format).*; update"):
        load(put(tmp_path, meta_only(json.dumps(meta))))
    strange = npz(**{"weights": np.zeros(3, np.float32), "replay/0": np.zeros(1), "meta": np.zeros(1, np.uint8)})
    with pytest.raises(ValueError, match=r"newer version of dba3c, .*replay/0"):
        load(put(tmp_path, strange))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.fault(36, "FIFO or folder named like a checkpoint", "skipped, nothing hangs")
def test_what_only_has_the_name_of_a_checkpoint_is_passed_over(tmp_path: Path, make: Any) -> None:
    good = save(tmp_path, state(1), keep=3)
    make(tmp_path / f"update-000000009.{'0' * 16}.npz")
    loaded, _ = load_quietly(tmp_path)
    assert loaded is not None
    assert loaded.progress["updates"] == 1
    for updates in (2, 10):
        save(tmp_path, state(updates), keep=1)
    assert not good.exists()
    assert len(newest_first(tmp_path)) == 1


@pytest.mark.parametrize("what", ["weights", "optimizer", "algorithm"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.fault(
    36,
    "NaN or Inf in a checkpoint",
    "skipped with a warning, the one before is loaded; never saved",
    "since the one before",
)
def test_what_is_not_finite_is_neither_loaded_nor_saved(tmp_path: Path, what: str, value: float) -> None:
    save(tmp_path, state(1), keep=3)
    spoiled = state(2)
    array = {"weights": spoiled.weights, "optimizer": spoiled.optimizer["m"], "algorithm": spoiled.algorithm["target"]}
    array[what][3] = value
    put(tmp_path, encode(spoiled), updates=2)
    loaded, warnings = load_quietly(tmp_path)
    assert loaded is not None
    assert loaded.progress["updates"] == 1
    assert "not finite" in warnings[0]
    with pytest.raises(OSError, match="not finite"):
        save(tmp_path, spoiled, keep=1)


MISFITS = {
    "another length": {"weights": np.zeros(99, np.float32), "optimizer": {"m": np.zeros(99, np.float32)}},
    "a slot missing": {"optimizer": {"steps": np.array(3)}},
    "a slot too many": {"optimizer": {"m": np.zeros(100, np.float32), "v": np.zeros(100, np.float32)}},
    "another target": {"algorithm": {"target": np.zeros(3, np.float32)}},
}


@pytest.mark.parametrize("change", MISFITS.values(), ids=MISFITS.keys())
@pytest.mark.fault(
    36,
    "arrays in a checkpoint that do not fit",
    "skipped with a warning, the one before is loaded",
    "since the one before",
)
def test_arrays_that_do_not_fit_the_agent_are_passed_over(tmp_path: Path, change: dict[str, Any]) -> None:
    for saved in (state(1), state(2)._replace(**change)):
        save(tmp_path, saved, keep=3)
    warnings: list[str] = []
    loaded = load_newest(tmp_path, warnings.append, like=state(0))
    assert loaded is not None
    assert loaded.progress["updates"] == 1
    assert "does not fit" in warnings[0]


def test_a_checkpoint_of_another_game_is_refused_not_passed_over(tmp_path: Path) -> None:
    save(tmp_path, state(1, "env.game=pong"), keep=3)
    with pytest.raises(ConfigError, match=r"env\.game='breakout': .* trained with 'pong'"):
        load_newest(tmp_path, print, like=state(0))


@pytest.mark.fault(35, "an old checkpoint cannot be removed", "saved, reported once; the exit code does not change")
def test_an_old_file_that_cannot_be_removed_is_told_and_the_save_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (save(tmp_path, state(updates), keep=3) for updates in (1, 2))
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == first:
            raise PermissionError(errno.EPERM, "not permitted", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    told: list[str] = []
    saved = save(tmp_path, state(3), keep=1, warn=told.append)
    assert saved.exists()
    assert not second.exists()
    assert len(told) == 1
    assert "saved" in told[0]
    assert first.name in told[0]


def test_a_configuration_from_before_some_key_gets_its_default() -> None:
    text = settings("algorithm.gamma=0.9").dump()
    assert "  gae_lambda: 0.95\n" in text
    older = parse(text.replace("  gae_lambda: 0.95\n", ""))
    assert (older.algorithm.gae_lambda, older.algorithm.gamma) == (0.95, 0.9)
