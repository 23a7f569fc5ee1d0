"""What a run leaves on the disk, and who reads and writes it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(path: Path, data: bytes) -> None:
    """The file is replaced at once, and is on the disk when this returns."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")  # unpredictable, so no link can wait there
    try:
        with open(os.open(temporary, NEW_FILE, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
