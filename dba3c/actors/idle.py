"""The actor of a rank that has no simulators: it only serves weights to the others."""

from __future__ import annotations

from dba3c.types import Batch


class Idle:
    def restart(self, update: int) -> None: ...

    def __iter__(self) -> Idle:
        return self

    def __next__(self) -> Batch | None:
        return None

    def close(self) -> None: ...
