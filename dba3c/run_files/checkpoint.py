"""Checkpoints: npz files, written atomically, with their checksum in their name; loading one never executes code."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.config.loading import parse
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.run_files import write_atomically
from dba3c.types import Array, Json

NAME = re.compile(r"update-(\d{9})\.([0-9a-f]{16})\.npz")


class Checkpoint(NamedTuple):
    """All that a run needs to resume; random numbers are functions of seed and update, and need no state."""

    weights: Array  # [P]
    optimizer: dict[str, Array]
    progress: Json
    config: Config
    algorithm: dict[str, Array]  # what it keeps besides the weights


def save(directory: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint, and remove all but the newest `keep` checkpoints."""
    path = add(directory, checkpoint)
    tidy_up(directory, path, keep)
    return path


def add(directory: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint as a whole file or not at all, and leave all others as they are."""
    directory.mkdir(parents=True, exist_ok=True)
    data = encode(checkpoint)
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = directory / f"update-{checkpoint.progress['updates']:09d}.{digest}.npz"
    write_atomically(path, data)
    return path


def tidy_up(directory: Path, saved: Path, keep: int) -> None:
    """Keep `saved` and the newest before it, set newer ones aside, and remove what an interrupted save left."""
    for newer in (path for path in newest_first(directory) if update_of(path) > update_of(saved)):
        # It could not be loaded: otherwise the run would have resumed from it, and would have saved a later update.
        newer.rename(newer.with_name(newer.name + ".abandoned"))
    replaced = [path for path in newest_first(directory) if update_of(path) == update_of(saved) and path != saved]
    outdated = [path for path in newest_first(directory) if path not in replaced][keep:]
    for path in (*replaced, *outdated, *directory.glob(".update-*.tmp")):
        path.unlink(missing_ok=True)


def update_of(path: Path) -> int:
    """Return the number of the update after which a checkpoint was saved."""
    return int(path.name[7:16])


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the content of a checkpoint's file."""
    arrays = {"weights": checkpoint.weights}
    arrays |= {f"optimizer/{name}": slot for name, slot in checkpoint.optimizer.items()}
    arrays |= {f"algorithm/{name}": value for name, value in checkpoint.algorithm.items()}
    meta = json.dumps({"progress": checkpoint.progress, "config": checkpoint.config.dump()})
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(meta.encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def load(path: Path) -> Checkpoint:
    """Read and verify one checkpoint; ValueError if it is damaged."""
    data = path.read_bytes()
    match = NAME.fullmatch(path.name)
    if match and hashlib.sha256(data).hexdigest()[:16] != match[2]:
        raise ValueError(f"{path} is damaged: its content does not match the checksum in its name")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(bytes(arrays.pop("meta")))
        config = parse(meta["config"])
        progress, algorithm = meta["progress"], below("algorithm/", arrays)
        if "advantage_scale" in progress:  # where version 0.1 kept it
            algorithm["advantage_scale"] = np.array(progress.pop("advantage_scale"))
        return Checkpoint(arrays["weights"], below("optimizer/", arrays), progress, config, algorithm)
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError, ConfigError) as error:
        raise ValueError(f"{path} is not a checkpoint of this version: {error}") from None


def below(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def newest_first(directory: Path) -> list[Path]:
    """List the checkpoints in a directory."""
    return sorted((path for path in directory.glob("update-*.npz") if NAME.fullmatch(path.name)), reverse=True)


def load_newest(directory: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """Load the newest good checkpoint; None if there are no checkpoints, ConfigError if all are damaged."""
    paths = newest_first(directory)
    for path in paths:
        try:
            return load(path)
        except (ValueError, OSError) as error:
            warn(f"{error}; trying the previous checkpoint")
    if paths:
        raise ConfigError(
            f"--run-dir={directory.parent}: none of its {len(paths)} checkpoints can be loaded; choose another one"
        )
    return None
