"""Measurements of speed: one file each, with what they share beside them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING, Protocol

from dba3c.types import Json

if TYPE_CHECKING:
    from rich.console import RenderableType


class Measurement(Protocol):
    """What the module of a measurement offers besides `measure` and, where there is a picture, `plot`."""

    HELP: str

    def options(self, parser: ArgumentParser) -> None: ...
    def table(self, result: Json) -> RenderableType: ...
