"""Loading of a configuration: hyperparams.yaml, then a preset, then --section.key=value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dba3c.config.consistency import check_contradictions
from dba3c.config.messages import ConfigError, UnknownKeyError, cut, explain, shown, suggest
from dba3c.config.schema import Config
from dba3c.config.strict_yaml import MOST_BYTES, parse_yaml

HYPERPARAMS = Path(__file__).parents[1] / "hyperparams.yaml"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def load(preset: str = "paper", overrides: Iterable[str] = (), path: Path = HYPERPARAMS) -> Config:
    """Resolve the configuration; ConfigError if anything is wrong with it."""
    values = built_in() if path == HYPERPARAMS else read_yaml(path)
    presets = values.pop("presets", None) or {}
    if not isinstance(presets, dict) or preset not in presets:
        names = map(str, presets) if isinstance(presets, dict) else ()
        raise ConfigError(f"--preset={cut(preset)}: no such preset in {path.name}{suggest(preset, names)}")
    merge(values, presets[preset] or {}, f"presets.{preset}")
    for override in overrides:
        apply_override(values, override)
    config = validate(values)
    check_contradictions(config)
    return config


def parse(text: str) -> Config:
    """Parse what `Config.dump` wrote; keys that its version of dba3c did not have get their defaults.

    ConfigError if a program could not name files after its game.
    """
    values = built_in()
    values.pop("presets")
    merge(values, parse_yaml(text, "configuration"), "configuration")
    config = validate(values)
    if not PLAIN_NAME.fullmatch(config.env.game):
        raise ConfigError(f"env.game={shown(config.env.game)}: must be a plain name: letters, digits, _, - and .")
    return config


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the sections of a yaml file; ConfigError if it has none."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--config={path}: cannot be read: {error}") from None
    values = parse_yaml(text, f"--config={path}")
    if not isinstance(values, dict):
        raise ConfigError(f"--config={path}: must hold sections (env:, model:, …), not {shown(values)}")
    return values


def built_in() -> dict[str, Any]:
    """Return the sections of the hyperparams.yaml that comes with dba3c."""
    return dict(read_built_in())


@cache
def read_built_in() -> dict[str, Any]:
    """Read them once, as programs that compare runs need them often; callers must not change the result."""
    return read_yaml(HYPERPARAMS)


def merge(values: dict[str, Any], changes: object, where: str) -> None:
    """Override `values` with `changes`, section by section."""
    if not isinstance(changes, dict):
        raise ConfigError(f"{where}: must hold sections (env:, model:, …), not {shown(changes)}")
    for section, keys in changes.items():
        if isinstance(keys, dict) and isinstance(values.get(section), dict):
            values[section] = {**values[section], **keys}
        else:
            values[section] = keys


def apply_override(values: dict[str, Any], override: str) -> None:
    """Override `values` with one `section.key=value`."""
    name, equals, text = override.partition("=")
    section, dot, key = name.partition(".")
    if not (equals and dot and key):
        known = [f"{s}.{k}" for s, keys in values.items() if isinstance(keys, dict) for k in keys]
        hint = suggest(name, known) or "; write --section.key=value, see --help for all keys"
        raise ConfigError(f"--{cut(override)}: not understood{hint}")
    merge(values, {section: {key: parse_value(text)}}, "command line")


def parse_value(text: str) -> object:
    """Parse a value as yaml; what is not yaml becomes a string, which validation judges."""
    try:
        return parse_yaml(text, "")
    except ConfigError:
        return text


def validate(values: object) -> Config:
    """Check types and ranges; ConfigError for the first value that is wrong."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        errors = error.errors()
        kind = UnknownKeyError if errors[0]["type"] == "extra_forbidden" else ConfigError
        raise kind(explain(errors)) from None


def preset_names(path: Path = HYPERPARAMS) -> list[str]:
    """Return the names of the presets in hyperparams.yaml."""
    return list((built_in() if path == HYPERPARAMS else read_yaml(path))["presets"])
