"""Command lines: the parser, overrides of the configuration, and the exit code for bad input."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from dba3c.config import plugins
from dba3c.config.messages import ConfigError, cut
from dba3c.job.exit import EXIT_BAD_INPUT, EXIT_OK
from dba3c.job.process import quiet_stderr, settle_streams

HELP = ("-h", "--help")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises ConfigError, so that a job of many ranks prints one message, and loads plug-ins."""

    def __init__(self, plugins: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        if plugins:
            text = "a file, or an importable module, that registers parts with their own keys; may be repeated"
            self.add_argument("--plugin", action="append", default=[], metavar="FILE", help=text)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # as argparse declares it, overloaded
        for word in args or ():
            if word.endswith("=--"):  # argparse would take it for an empty list
                raise ConfigError(f"{cut(word)}: needs a value; see --help")
        options, rest = super().parse_known_args(args, namespace)
        try:
            with quiet_stderr():  # TensorFlow's own messages
                plugins.load(getattr(options, "plugin", ()))
        except plugins.PluginError as error:
            raise ConfigError(str(error)) from None
        return options, rest

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def show_help(make: Callable[[], Parser], argv: list[str]) -> int:
    """Print the options of a command, with the keys of its plug-ins; return the exit code."""

    def show() -> None:
        make().parse_known_args([word for word in argv if word not in HELP])  # loads plug-ins
        make().print_help()

    return answer(show)


def answer(work: Callable[[], None]) -> int:
    """Run a program of one process, report bad input in one line, and return the exit code."""

    def done() -> int:
        work()
        return EXIT_OK

    return refused_or(done)


def refused_or(work: Callable[[], int]) -> int:
    """Return the exit code of `work`, or that of bad input, after one line about it."""
    show_any_text()
    try:
        code = work()
        if sys.stdout is not None:  # the parent may have closed it
            sys.stdout.flush()
        return code
    except ConfigError as refusal:
        print(f"dba3c: {refusal}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except BrokenPipeError:  # the reader has seen enough, as in `dba3c version | head -1`
        settle_streams()
        return EXIT_OK
    except OSError as error:
        print(f"dba3c: {ConfigError(f'{error.filename}: {error.strerror}; choose another one')}", file=sys.stderr)
        return EXIT_BAD_INPUT


def show_any_text() -> None:
    """Let standard output and error show what their encoding has no letter for in another way."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def checked_path(text: str) -> Path:
    """Read an option that names a file or a folder."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} names no file or folder; leave it out or give it a name")
    return Path(text)


def new_file(text: str) -> Path:
    """Read an option that names a file to write, before the work begins whose result it shall hold."""
    path = checked_path(text)
    if os.path.isdir(path):  # never raises, however long the name
        raise argparse.ArgumentTypeError(f"{path} is a folder; name a file")
    if not os.path.isdir(path.parent):
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}; create it or choose another")
    return path


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
