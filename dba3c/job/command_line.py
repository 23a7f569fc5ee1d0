"""Command lines: the parser, overrides of the configuration, and the exit code for bad input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from dba3c.config.messages import ConfigError
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_OK


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises ConfigError, so that a job of many ranks prints one message."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def answer(work: Callable[[], None]) -> int:
    """Run a program of one process, report bad input in one line, and return the exit code."""
    try:
        work()
    except ConfigError as refusal:
        print(f"dba3c: {refusal}", file=sys.stderr)
        return EXIT_BAD_INPUT
    return EXIT_OK


def split_overrides(words: list[str]) -> list[str]:
    """Turn `--a.b=1` and `--a.b 1` into `a.b=1`."""
    overrides: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            raise ConfigError(f"{word}: not understood; write options as --section.key=value")
        name = word.removeprefix("--")
        value = None if "=" in name else next(remaining, None)
        overrides.append(name if value is None else f"{name}={value}")
    return overrides
