"""RUN_DIR/log.txt: every message of a run, whatever became of the terminal."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


class LogFile:
    """Appends messages; it is opened for each, so that one removed meanwhile comes back."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / "log.txt"

    def write(self, text: str) -> None:
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        data = "".join(f"{stamp}  {line}\n" for line in text.splitlines())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o644)
        try:
            os.write(file, data.encode("utf-8", "replace"))
        finally:
            os.close(file)
