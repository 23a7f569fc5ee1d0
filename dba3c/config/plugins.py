"""Plug-ins: files and installed packages that register parts with their own keys, without a change to dba3c.

A plug-in is named on the command line, --plugin my_module.py, or is an entry point of the group dba3c.plugins, which is
loaded whenever it is installed. No file of a run or an agent can name code that would then be executed.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import create_model

from dba3c.config import names
from dba3c.config.schema import Config

GROUP = "dba3c.plugins"  # of entry points
LOADED: dict[str, str] = {}  # name → the first 16 hex digits of its file's SHA-256; the ranks compare them


class PluginError(Exception):
    """A plug-in that cannot be loaded, with a message of one line."""


def wanted(argv: Iterable[str]) -> bool:
    """Whether a command line names a plug-in, or one is installed."""
    return any(word.partition("=")[0] == "--plugin" for word in argv) or bool(installed())


def installed() -> Iterable[metadata.EntryPoint]:
    return metadata.entry_points(group=GROUP)


def load(named: Iterable[str] = ()) -> None:
    """Load the plug-ins that are installed and those that are named; a second time nothing happens."""
    for point in installed():
        load_one(point.name, f"entry point {point.name}", point.load)
    for text in named:
        work = partial(run_file, Path(text)) if text.endswith(".py") else partial(importlib.import_module, text)
        load_one(Path(text).stem if text.endswith(".py") else text, f"--plugin={text}", work)


def load_one(name: str, where: str, work: Callable[[], Any]) -> None:
    """Run a plug-in, which registers its parts; PluginError, with the line that failed, if it does not get so far."""
    if name in LOADED:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it may import TensorFlow
    before = {*names.KEYS}
    try:
        loaded = work()
        check_keys({*names.KEYS} - before)
    except PluginError as error:
        raise PluginError(f"{where}: {error}") from None
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        raise PluginError(
            f"{where}: {Path(line.filename).name}, line {line.lineno}: {type(error).__name__}: {error}"
        ) from error
    LOADED[name] = digest(loaded)


def run_file(path: Path) -> ModuleType:
    """Run a file as a module of its own name, which what it defines can be found by."""
    if not path.is_file():
        raise PluginError("there is no such file; check its name")
    name = f"dba3c_plugin_{path.stem}"
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(loaded: Any) -> str:
    """Hash the file of a plug-in: its module, or what an entry point names in one."""
    module = loaded if isinstance(loaded, ModuleType) else sys.modules[loaded.__module__]
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:16]


def check_keys(added: Iterable[str]) -> None:
    """Raise ValueError for a key that dba3c itself has, and for a default that is not of its own type."""
    for name in added:
        section, _, own = name.partition(".")
        if own in getattr(Config.model_fields[section].annotation, "model_fields", {}):
            raise ValueError(f"{name}: is a key of dba3c; choose another name")


def missing(saved: object) -> list[str]:
    """Name the plug-ins of a run that are not loaded."""
    return [str(name) for name in saved if name not in LOADED] if isinstance(saved, dict) else []


def described() -> str:
    """List the keys of plug-ins for --help, with their defaults and meanings."""
    lines = [f"--{name}={key.default}".ljust(38) + key.meaning for name, key in names.KEYS.items()]
    return "\n\nKeys of plug-ins:\n\n" + "\n".join(lines) + "\n" if lines else ""


def extended() -> type[Config]:
    """Return the configuration with the keys that plug-ins have added."""
    return with_keys(tuple(names.KEYS))


@cache
def with_keys(added: tuple[str, ...]) -> type[Config]:
    """Add registered keys to the sections of the configuration."""
    sections: dict[str, dict[str, Any]] = {}
    for name in added:
        section, _, own = name.partition(".")
        sections.setdefault(section, {})[own] = (names.KEYS[name].type, ...)
    fields: dict[str, Any] = {}
    for section, keys in sections.items():
        base: Any = Config.model_fields[section].annotation
        fields[section] = (create_model(base.__name__, __base__=base, **keys), ...)
    if not fields:
        return Config
    made = create_model("Config", __base__=Config, **fields)
    copyreg.pickle(made, as_values)
    return made


def as_values(config: Config) -> tuple[Callable[[dict[str, Any]], Config], tuple[dict[str, Any]]]:
    """Say how to pickle a configuration whose class was made here and has no name that it could be found by."""
    return revive, (config.model_dump(),)


def revive(values: dict[str, Any]) -> Config:
    """Make the configuration again that another rank has sent."""
    return extended().model_validate(values)
