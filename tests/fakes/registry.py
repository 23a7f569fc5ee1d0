"""The registry of parts, as it was before a test loaded plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dba3c.config.names import KEYS, PARTS
from dba3c.config.plugins import LOADED


@contextmanager
def restored() -> Iterator[None]:
    """Forget what is registered meanwhile."""
    parts = {key: dict(names) for key, names in PARTS.items()}
    yield
    for key, names in parts.items():
        PARTS[key].clear()
        PARTS[key].update(names)
    KEYS.clear()
    LOADED.clear()
