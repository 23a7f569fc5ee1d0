"""Loading of a configuration: hyperparams.yaml, then a preset, then --section.key=value."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from dba3c.config.consistency import check_contradictions
from dba3c.config.messages import ConfigError, explain, shown, suggest
from dba3c.config.schema import Config

HYPERPARAMS = Path(__file__).parents[1] / "hyperparams.yaml"


def load(preset: str = "paper", overrides: Iterable[str] = (), path: Path = HYPERPARAMS) -> Config:
    """Resolve the configuration; ConfigError if anything is wrong with it."""
    values = read_yaml(path)
    presets = values.pop("presets", None) or {}
    if not isinstance(presets, dict) or preset not in presets:
        names = map(str, presets) if isinstance(presets, dict) else ()
        raise ConfigError(f"--preset={preset}: no such preset in {path.name}{suggest(preset, names)}")
    merge(values, presets[preset] or {}, f"presets.{preset}")
    for override in overrides:
        apply_override(values, override)
    config = validate(values)
    check_contradictions(config)
    return config


def parse(text: str) -> Config:
    """Parse what `Config.dump` wrote; keys that its version of dba3c did not have get their defaults."""
    values = read_yaml(HYPERPARAMS)
    values.pop("presets")
    merge(values, parse_yaml(text, "configuration"), "configuration")
    return validate(values)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the sections of a yaml file; ConfigError if it has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config={path}: cannot be read: {error}") from None
    values = parse_yaml(text, f"--config={path}")
    if not isinstance(values, dict):
        raise ConfigError(f"--config={path}: must hold sections (env:, model:, …), not {shown(values)}")
    return values


def parse_yaml(text: str, where: str) -> object:
    """Parse yaml; ConfigError that begins with `where` if the text is not yaml."""
    try:
        parsed: object = yaml.safe_load(text)
        return parsed
    except Exception as error:  # besides YAMLError, PyYAML raises ValueError, KeyError, RecursionError and others
        raise ConfigError(f"{where}: is not yaml: {error}") from None


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
        raise ConfigError(f"--{override}: not understood{hint}")
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
        raise ConfigError(explain(error.errors())) from None


def preset_names(path: Path = HYPERPARAMS) -> list[str]:
    """Return the names of the presets in hyperparams.yaml."""
    return list(read_yaml(path)["presets"])
