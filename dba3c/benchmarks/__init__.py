"""Measurements of speed, one file each; here the options that several of them share."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Protocol

from dba3c.types import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dba3c.benchmarks.launching import Bar
from argparse import Namespace
from functools import cache
from pathlib import Path

from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.envs.atari_names import resolve_game
from dba3c.job.command_line import split_overrides


class Command(Protocol):
    """What the module of every measurement offers; some also draw a picture, with `plot`."""

    HELP: str

    def options(self, parser: ArgumentParser) -> None: ...
    def table(self, result: Json) -> RenderableType: ...


class Measurement(Command, Protocol):
    """A measurement that starts its own ranks, on this machine."""

    def measure(self, options: Namespace, bar: Bar) -> Json: ...


PRESET = "a2c"  # the most steps/s: the rest of the system shows best next to little arithmetic
KEYS_TOO = "; keys of the configuration may follow: --actor.n_steps=20"


def add_game(parser: ArgumentParser) -> None:
    parser.add_argument("--game", default="breakout", help="default: breakout")


def add_seconds(parser: ArgumentParser, default: float) -> None:
    parser.add_argument("--seconds", type=float, default=default, help=f"per measurement (default: {default:g})")


def add_repeats(parser: ArgumentParser, default: int = 3) -> None:
    parser.add_argument("--repeats", type=int, default=default, help=f"runs of each, in turn (default: {default})")


def add_preset(parser: ArgumentParser) -> None:
    names = ", ".join(measurable_presets())
    parser.add_argument("--preset", default=PRESET, help=f"one of {names} (default: {PRESET})")


def add_plot(parser: ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture (png) there")


def counts(text: str) -> list[int]:
    """Read numbers of at least 1, with commas between them."""
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise ValueError
    return numbers


def complete(options: Namespace, rest: list[str]) -> Namespace:
    """Resolve the game, and take the rest of the command line for keys of the configuration where that makes sense."""
    if rest and not options.takes_keys:
        raise ConfigError(f"{rest[0]}: not understood; see --help")
    options.overrides = split_overrides(rest)
    if "game" in options:
        options.game = resolve_game(options.game, "--game")
    if "preset" in options:
        if note := loading.note_renamed(options.preset):
            print(note, file=sys.stderr)
        refuse_unmeasurable(loading.load(options.preset, options.overrides))
    return options


def refuse_unmeasurable(config: Config) -> None:
    """Refuse what would have no effect, or whose figures would be wrong."""
    if config.comm.transport != "mpi":
        raise ConfigError(
            f"comm.transport={config.comm.transport}: is not used here, as only mpi can divide the ranks;"
            " bench scaling compares the transports at its end"
        )
    if config.env.profile == "gymnasium":
        raise ConfigError("env.profile=gymnasium: bench control measures such tasks; choose an Atari game")
    if not one_update_per_segment(config):
        raise ConfigError(
            f"algorithm.name={config.algorithm.name}: makes several updates from each segment, and only the first"
            " includes its play, so the figures would be wrong; choose one of the presets"
            f" {', '.join(measurable_presets())}"
        )


@cache
def measurable_presets() -> tuple[str, ...]:
    configs = {name: loading.load(name) for name in loading.preset_names()}
    return tuple(
        name for name, each in configs.items() if one_update_per_segment(each) and each.env.profile != "gymnasium"
    )


def one_update_per_segment(config: Config) -> bool:
    return not (config.several_passes or config.experience.capacity_steps)
