"""Loading of a configuration: hyperparams.yaml, then a preset, then a file, then --section.key=value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from dba3c.config.consistency import check_contradictions
from dba3c.config.messages import (
    ConfigError,
    MissingPluginError,
    UnknownKeyError,
    cut,
    explain,
    nearest,
    shown,
    suggest,
)
from dba3c.config.names import KEYS, PARTS
from dba3c.config.plugins import LOADED, extended, missing
from dba3c.config.schema import Config, file_name
from dba3c.config.strict_yaml import MOST_BYTES, parse_yaml

HYPERPARAMS = Path(__file__).parents[1] / "hyperparams.yaml"
OPTIONS = ("preset", "game", "run-dir", "config", "ranks", "dry-run", "plugin", "init", "help")  # besides keys
RENAMED = {"paac": "a2c"}  # presets that had another name in version 0.1
BEFORE = {"evaluate": {"in_a_row": 1}}  # what version 0.1 did where it had no key, and the default is another now
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Layers(NamedTuple):
    """Where values come from, the last word last."""

    values: dict[str, Any]  # hyperparams.yaml; over it, a file that has presets of its own
    presets: dict[str, Any]
    own: dict[str, Any]  # a file without presets; over it, the command line


def load(
    preset: str = "paper", overrides: Iterable[str] = (), path: Path = HYPERPARAMS, n_sim: int | None = None
) -> Config:
    """Resolve the configuration; ConfigError if anything is wrong with it. `n_sim` replaces that of the preset."""
    config = validate(merged(preset, overrides, path, n_sim))
    check_contradictions(config)
    return config.model_copy(update={"plugins": dict(LOADED)})


def merged(preset: str, overrides: Iterable[str], path: Path, n_sim: int | None = None) -> dict[str, Any]:
    """Lay the preset and what the user gave over hyperparams.yaml."""
    values, presets, own = layers(overrides, path)
    preset = RENAMED.get(preset, preset) if preset not in presets else preset
    if preset not in presets:
        raise ConfigError(f"--preset={cut(preset)}: no such preset in {path.name}{suggest(preset, map(str, presets))}")
    merge(values, presets[preset] or {}, f"presets.{preset}")
    if n_sim is not None:
        merge(values, {"env": {"n_sim": n_sim}}, "preset auto")
    merge(values, own, "configuration")
    return values


def layers(overrides: Iterable[str], path: Path) -> Layers:
    """Read the layers; a file with presets replaces values that presets change, any other file has the last word."""
    values = built_in()
    presets = dict(values.pop("presets"))
    own: dict[str, Any] = {}
    if path != HYPERPARAMS:
        file = read_yaml(path)
        changed = file.pop("presets", {}) or {}
        if not isinstance(changed, dict):
            raise ConfigError(f"--config={path}: presets must hold presets by name, not {shown(changed)}")
        merge(values if changed else own, file, f"--config={path}")
        presets |= changed
    for override in overrides:
        apply_override(own, override)
    return Layers(values, presets, own)


def given(overrides: Iterable[str], path: Path) -> set[str]:
    """Return the keys that the command line and a file without presets set, as section.key."""
    own = layers(overrides, path).own
    return {f"{section}.{key}" for section, keys in own.items() if isinstance(keys, dict) for key in keys}


def title(preset: str, overrides: Iterable[str], path: Path) -> tuple[str, str]:
    """Return the profile, and the game as the user wrote it, before anything else is checked."""
    values = merged(preset, overrides, path)
    env = values["env"]
    profile, name = (env.get("profile"), env.get("game")) if isinstance(env, dict) else (None, None)
    if not isinstance(name, str):
        raise ConfigError(f"env.game={shown(name)}: must be the name of a game; dba3c games lists them")
    if not isinstance(profile, str) or profile not in PARTS["env.profile"]:
        refuse_missing_plugins(values)
        raise ConfigError(f"env.profile={shown(profile)}: no such profile{suggest(str(profile), PARTS['env.profile'])}")
    return profile, name


def parse(text: str) -> Config:
    """Parse what `Config.dump` wrote; keys that its version of dba3c did not have get what that version did.

    ConfigError if a program could not name files after its game.
    """
    values = built_in()
    values.pop("presets")
    merge(values, BEFORE, "version 0.1")
    merge(values, parse_yaml(text, "configuration"), "configuration")
    config = validate(values)
    game = config.env.game
    if not PLAIN_NAME.fullmatch(file_name(game) if config.env.profile == "gymnasium" else game):
        raise ConfigError(f"env.game={shown(game)}: must be a plain name: letters, digits, _, - and .")
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
    """Return the sections of the hyperparams.yaml that comes with dba3c, and the keys of plug-ins."""
    values = dict(read_built_in())
    for name, key in KEYS.items():
        section, _, own = name.partition(".")
        values[section] = {**values[section], own: key.default}
    return values


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
        hint = suggest_option(name) or "; write --section.key=value, see --help for all keys"
        raise ConfigError(f"--{cut(override)}: not understood{hint}")
    merge(values, {section: {key: parse_value(text)}}, "command line")


def suggest_option(name: str) -> str:
    """Return the end of a message: the options that somebody who wrote `name` may have meant, or nothing."""
    keys = [f"{section}.{key}" for section, keys in built_in().items() if section != "presets" for key in keys]
    known = {option: f"--{option}" for option in OPTIONS} | {key: f"--{key}" for key in keys}
    if "." not in name:  # the section was left out
        known |= {key.partition(".")[2]: f"--{key}" for key in reversed(keys)} | known
    meant = [known[word] for word in nearest(name, known)]
    return f"; did you mean {' or '.join(dict.fromkeys(meant))}?" if meant else ""


def parse_value(text: str) -> object:
    """Parse a value as yaml; what is not yaml becomes a string, which validation judges."""
    try:
        return parse_yaml(text, "")
    except ConfigError:
        return text


def validate(values: object) -> Config:
    """Check types and ranges; ConfigError for the first value that is wrong."""
    try:
        return extended().model_validate(values)
    except ValidationError as error:
        refuse_missing_plugins(values)
        errors = error.errors()
        kind = UnknownKeyError if errors[0]["type"] == "extra_forbidden" else ConfigError
        raise kind(explain(errors)) from None


def refuse_missing_plugins(values: object) -> None:
    """Raise MissingPluginError if a run's configuration speaks of parts that a plug-in has to bring."""
    if isinstance(values, dict) and (names := missing(values.get("plugins"))):
        options = " ".join(f"--plugin {name}.py" for name in names)
        raise MissingPluginError(f"the run was trained with the plug-in {', '.join(names)}; add {options}")


def note_renamed(preset: str) -> str:
    """Say what a preset is called now; nothing if its name has not changed."""
    if preset not in RENAMED or preset in preset_names():
        return ""
    return f"preset {preset} is now called {RENAMED[preset]}; paac-nips and paac-nature are PAAC as published"


def name_in(preset: str, path: Path) -> str:
    """Return the name of a preset in the hyperparams.yaml of another version, which may know the old name only."""
    names = preset_names(path)
    old = [before for before, now in RENAMED.items() if now == preset and before in names]
    return preset if preset in names or not old else old[0]


def preset_names(path: Path = HYPERPARAMS) -> list[str]:
    """Return the names of the presets in hyperparams.yaml."""
    return list((built_in() if path == HYPERPARAMS else read_yaml(path))["presets"])
