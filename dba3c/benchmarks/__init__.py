"""Measurements of speed: one file each, with what they share beside them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Protocol

from dba3c.types import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dba3c.benchmarks.screen import Bar


class Command(Protocol):
    """What the module of every measurement offers; some also draw a picture, with `plot`."""

    HELP: str

    def options(self, parser: ArgumentParser) -> None: ...
    def table(self, result: Json) -> RenderableType: ...


class Measurement(Command, Protocol):
    """One that starts its own ranks, on this machine."""

    def measure(self, options: Namespace, bar: Bar) -> Json: ...
