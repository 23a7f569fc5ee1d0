"""Checkpoints: npz files, written atomically, with their checksum in their name; loading one never executes code."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.config import comparison
from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError, MissingPluginError, UnknownKeyError, cut, one_line, shown
from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.run_files.progress import NewerVersionError, read_progress
from dba3c.run_files.untrusted import opened, parse_json, read_arrays, tell
from dba3c.types import Array, Json

MOST_BYTES = 2**30
GROUPS = ("optimizer/", "algorithm/", "statistics/")
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NONE: dict[str, Array] = {}
NAME = re.compile(r"update-(\d{9})\.([0-9a-f]{16})\.npz")


class Checkpoint(NamedTuple):
    """All that a run needs to resume; random numbers are functions of seed and update, and need no state."""

    weights: Array  # [P]
    optimizer: dict[str, Array]
    progress: Json
    config: Config
    algorithm: dict[str, Array]  # what it keeps besides the weights
    statistics: dict[str, Array] = NONE  # with which observations and rewards are normalised; part of the agent


def save(directory: Path, checkpoint: Checkpoint, keep: int, warn: Callable[[str], None] = tell) -> Path:
    """Write a checkpoint, and remove all but the newest `keep`; old ones make room for it where the disk is full."""
    while True:
        try:
            path = add(directory, checkpoint)
            break
        except OSError as error:
            if error.errno not in DISK_FULL or not make_room(directory):
                raise
    tidy_up(directory, path, keep, warn)
    return path


def add(directory: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint as a whole file or not at all, and leave all others as they are; OSError if it cannot be."""
    directory.mkdir(parents=True, exist_ok=True)
    data = encode_finite(checkpoint)
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = directory / f"update-{checkpoint.progress['updates']:09d}.{digest}.npz"
    write_atomically(path, data)
    return path


def make_room(directory: Path) -> bool:
    """Remove what an interrupted save left, or the oldest checkpoint but for the newest good one; False if neither."""
    paths = newest_first(directory)
    good = next((path for path in paths if is_good(path)), None)
    spare = leftovers(directory) or [path for path in paths if good and path != good][-1:]
    for path in spare:
        path.unlink()
    return bool(spare)


def is_good(path: Path) -> bool:
    """Say whether a checkpoint can be loaded."""
    try:
        return bool(load(path))
    except (ValueError, OSError):
        return False


def tidy_up(directory: Path, saved: Path, keep: int, warn: Callable[[str], None] = tell) -> None:
    """Keep `saved` and the newest before it, set newer ones aside, and remove what an interrupted save left."""
    paths = newest_first(directory)
    newer = [path for path in paths if update_of(path) > update_of(saved)]
    replaced = [path for path in paths if update_of(path) == update_of(saved) and path != saved]
    outdated = [path for path in paths if path not in (*newer, *replaced)][keep:]
    # Newer ones could not be loaded: otherwise the run would have resumed from them, and saved later updates.
    changes: list[Callable[[], object]] = [partial(path.rename, f"{path}.abandoned") for path in newer]
    changes += [partial(path.unlink, missing_ok=True) for path in (*replaced, *outdated, *leftovers(directory))]
    for change in changes:
        try:
            change()
        except OSError as error:
            warn(f"saved {saved.name}, but could not remove an older file: {error}; remove it by hand")


def leftovers(directory: Path) -> list[Path]:
    """List the files that interrupted saves have left."""
    return [path for path in directory.glob(".*.npz.*.tmp") if path.is_file()]


def update_of(path: Path) -> int:
    """Return the number of the update after which a checkpoint was saved."""
    return int(path.name[7:16])


def encode_finite(checkpoint: Checkpoint) -> bytes:
    """Return the content of a checkpoint's file; OSError if no run could resume from it."""
    if not all(np.isfinite(array).all() for array in arrays_of(checkpoint).values()):
        raise OSError("its weights are not finite")
    return encode(checkpoint)


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the content of a checkpoint's file."""
    meta = json.dumps({"progress": checkpoint.progress, "config": checkpoint.config.dump()})
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(meta.encode(), np.uint8), **arrays_of(checkpoint))  # type: ignore[arg-type]
    return buffer.getvalue()


def arrays_of(checkpoint: Checkpoint) -> dict[str, Array]:
    """Return all arrays by their names in the file."""
    optimizer = {f"optimizer/{name}": slot for name, slot in checkpoint.optimizer.items()}
    algorithm = {f"algorithm/{name}": value for name, value in checkpoint.algorithm.items()}
    statistics = {f"statistics/{name}": value for name, value in checkpoint.statistics.items()}
    return {"weights": checkpoint.weights} | optimizer | algorithm | statistics


def load(path: Path) -> Checkpoint:
    """Read and verify one checkpoint; ValueError if it is damaged or of a newer version."""
    match = NAME.fullmatch(path.name)
    with opened(path, MOST_BYTES) as file:
        if match and hashlib.file_digest(file, "sha256").hexdigest()[:16] != match[2]:
            raise ValueError(f"{path} is damaged: its content does not match the checksum in its name")
        try:
            return decode(read_arrays(file))
        except MissingPluginError as error:
            raise MissingPluginError(f"{path}: {error}") from None
        except (NewerVersionError, UnknownKeyError) as error:
            raise ValueError(f"{path} was written by a newer version of dba3c, with {error}; update dba3c") from None
        except Exception as error:  # there is no end to what zipfile, NumPy, json and yaml raise for some bytes
            raise ValueError(one_line(f"{path} is not a checkpoint of this version: {error}")) from None


def decode(arrays: dict[str, Array]) -> Checkpoint:
    """Check what a file holds, and make a checkpoint of it."""
    strange = [name for name in arrays if name not in ("weights", "meta") and not name.startswith(GROUPS)]
    if strange:
        raise NewerVersionError(shown(strange[0]))
    meta = parse_json(arrays.pop("meta").tobytes())
    if not isinstance(meta, dict) or not isinstance(meta.get("config"), str):
        raise ValueError("it has no configuration")
    for name in meta.keys() - {"progress", "config"}:
        raise NewerVersionError(shown(name))
    saved, algorithm = meta.get("progress"), below("algorithm/", arrays)
    if isinstance(saved, dict) and "advantage_scale" in saved:  # where version 0.1 kept it
        algorithm["advantage_scale"] = np.array(saved.pop("advantage_scale"), np.float64)
    progress = asdict(read_progress(saved))
    optimizer, statistics = below("optimizer/", arrays), below("statistics/", arrays)
    checkpoint = Checkpoint(arrays["weights"], optimizer, progress, parse(meta["config"]), algorithm, statistics)
    check_arrays(checkpoint)
    return checkpoint


def below(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def check_arrays(checkpoint: Checkpoint) -> None:
    """Raise ValueError unless all numbers are finite and the optimizer's slots are as long as the weights."""
    weights = checkpoint.weights
    if weights.ndim != 1 or weights.dtype not in (np.float32, np.float16):
        raise ValueError("its weights are not one vector of numbers in 32 or 16 bits")
    for name, slot in checkpoint.optimizer.items():
        counter = slot.ndim == 0 and slot.dtype.kind in "iu" and slot >= 0
        if not counter and (slot.shape != weights.shape or slot.dtype != np.float32):
            raise ValueError(f"optimizer/{cut(name)} is neither a counter nor as long as the weights")
    for name, array in checkpoint.statistics.items():
        if array.dtype != np.float64:
            raise ValueError(f"statistics/{cut(name)} has no numbers in 64 bits")
    for name, array in arrays_of(checkpoint).items():
        if not np.isfinite(array).all():
            raise ValueError(f"{cut(name)} is not finite")


def check_fits(saved: Checkpoint, like: Checkpoint) -> None:
    """Raise ConfigError if a checkpoint is of another agent than `like`, ValueError if its arrays are."""
    comparison.differences(saved.config, like.config)
    found = {name: array.shape for name, array in arrays_of(saved).items()}
    wanted = {name: np.shape(array) for name, array in arrays_of(like).items()}
    changeable = {name for name in found.keys() ^ wanted.keys() if name.startswith("algorithm/")}  # its name may change
    for name in sorted((found.keys() | wanted.keys()) - changeable):
        if found.get(name) != wanted.get(name):
            raise ValueError(f"does not fit this agent: {cut(name)} is {found.get(name)}, not {wanted.get(name)}")


def check_length(saved: Checkpoint, parameters: int) -> None:
    """Raise ConfigError unless there is one weight for each parameter of the network."""
    if len(saved.weights) != parameters:
        raise ConfigError(
            f"the checkpoint has {len(saved.weights):,} weights, but the network in its configuration has"
            f" {parameters:,}; choose another checkpoint"
        )


def newest_first(directory: Path) -> list[Path]:
    """List the checkpoints in a directory."""
    named = (path for path in directory.glob("update-*.npz") if NAME.fullmatch(path.name))
    return sorted((path for path in named if path.is_file()), reverse=True)


def load_newest(directory: Path, warn: Callable[[str], None], like: Checkpoint | None = None) -> Checkpoint | None:
    """Load the newest good checkpoint; None if there are no checkpoints, ConfigError if all are damaged.

    With `like`, the present state of an agent, those that do not fit the agent are passed over, too.
    """
    paths = newest_first(directory)
    for path in paths:
        try:
            saved = load(path)
            if like is not None:
                check_fits(saved, like)
            return saved
        except (ValueError, OSError) as error:
            warn(one_line(f"{error if path.name in str(error) else f'{path} {error}'}; trying the previous checkpoint"))
    if paths:
        raise ConfigError(
            f"--run-dir={directory.parent}: none of its {len(paths)} checkpoints can be loaded; choose another one"
        )
    return None
