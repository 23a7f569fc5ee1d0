"""Command lines: one parser class, overrides, and the answer to bad input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from dba3c.config.messages import ConfigError
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_OK


class Parser(argparse.ArgumentParser):
    """Complains with ConfigError, so that the whole job says it once."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def answer(work: Callable[[], None]) -> int:
    """Run a program of one process; bad input is told in one line. The exit code."""
    try:
        work()
    except ConfigError as refusal:
        print(f"dba3c: {refusal}", file=sys.stderr)
        return EXIT_BAD_INPUT
    return EXIT_OK


def split_overrides(words: list[str]) -> list[str]:
    """`--a.b=1` and `--a.b 1` as `a.b=1`."""
    overrides: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            raise ConfigError(f"{word}: not understood; options are written --section.key=value")
        name = word.removeprefix("--")
        value = None if "=" in name else next(remaining, None)
        overrides.append(name if value is None else f"{name}={value}")
    return overrides
