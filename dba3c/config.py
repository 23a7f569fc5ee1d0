"""Configuration: hyperparams.yaml → preset → --section.key=value, with one clear message for what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dba3c.sections import Config

HYPERPARAMS = Path(__file__).with_name("hyperparams.yaml")


class ConfigError(Exception):
    """Bad input; the message, one line, names the field, the value and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def load(preset: str = "paper", overrides: Iterable[str] = (), path: Path = HYPERPARAMS) -> Config:
    """The resolved configuration; raises ConfigError with one message."""
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
    """The configuration that `Config.dump` wrote; keys that are newer than it have their default."""
    values = read_yaml(HYPERPARAMS)
    values.pop("presets")
    merge(values, parse_yaml(text, "configuration"), "configuration")
    return validate(values)


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config={path}: cannot be read: {error}") from None
    values = parse_yaml(text, f"--config={path}")
    if not isinstance(values, dict):
        raise ConfigError(f"--config={path}: must hold sections (env:, model:, …), not {shown(values)}")
    return values


def parse_yaml(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except Exception as error:  # besides YAMLError, PyYAML lets out ValueError, KeyError, RecursionError and others
        raise ConfigError(f"{where}: is not yaml: {error}") from None


def shown(value: Any) -> str:
    """A value as part of a message: not too long, and never an error of its own."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= 80 else text[:80] + "…"


def merge(values: dict[str, Any], changes: Any, where: str) -> None:
    """Lay `changes` over `values`, section by section."""
    if not isinstance(changes, dict):
        raise ConfigError(f"{where}: must hold sections (env:, model:, …), not {shown(changes)}")
    for section, keys in changes.items():
        if isinstance(keys, dict) and isinstance(values.get(section), dict):
            values[section] = {**values[section], **keys}
        else:
            values[section] = keys


def apply_override(values: dict[str, Any], override: str) -> None:
    """Lay one `section.key=value` over `values`."""
    name, equals, text = override.partition("=")
    section, dot, key = name.partition(".")
    if not (equals and dot and key):
        known = [f"{s}.{k}" for s, keys in values.items() if isinstance(keys, dict) for k in keys]
        hint = suggest(name, known) or "; write --section.key=value, --help lists them"
        raise ConfigError(f"--{override}: not understood{hint}")
    merge(values, {section: {key: parse_value(text)}}, "command line")


def parse_value(text: str) -> Any:
    """A value as yaml reads it; what is not yaml is a plain string, and validation says what is wrong with it."""
    try:
        return parse_yaml(text, "")
    except ConfigError:
        return text


def validate(values: Any) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error.errors())) from None


def explain(errors: list[ErrorDetails]) -> str:
    """One line for the first field that pydantic complains about."""
    error = errors[0]
    path = [str(part) for part in error["loc"][:2]]
    name = ".".join(path)
    if error["type"] == "extra_forbidden":
        section = Config.model_fields.get(path[0])
        annotation = section.annotation if section and len(path) == 2 else Config
        known = list(getattr(annotation, "model_fields", {}))
        prefix = f"{path[0]}." if len(path) == 2 else ""
        return f"{name}: no such key{suggest(path[-1], known, prefix)}"
    if error["type"] == "missing":
        return f"{name}: is missing; copy it from the hyperparams.yaml that comes with dba3c"
    same_field = [e["msg"].removeprefix("Value error, ") for e in errors if e["loc"][:2] == error["loc"][:2]]
    messages = [message[0].lower() + message[1:] for message in dict.fromkeys(same_field)]
    return f"{name}={shown(error['input'])}: {', or '.join(messages)}"


def suggest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """The nearest known words, as the end of a message."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return "; did you mean " + " or ".join(prefix + name for name in near) + "?"
    return f"; known: {', '.join(prefix + name for name in names)}" if 0 < len(names) <= 20 else ""


def check_contradictions(config: Config) -> None:
    """Refuse values that are fine alone but not together."""
    rollout = config.env.n_sim * config.actor.n_steps
    if config.actor.kind == "lockstep" and config.batch_size != rollout:
        raise ConfigError(
            f"train.batch_size={config.batch_size}: with actor.kind=lockstep a rank's batch is env.n_sim ×"
            f" actor.n_steps = {rollout}; set train.batch_size=auto or {rollout}, or actor.kind=async"
        )
    if config.comm.strategy == "allreduce" and config.comm.n_backup:
        raise ConfigError(f"comm.n_backup={config.comm.n_backup}: has no effect without comm.strategy=backup; set both")
    if config.algorithm.name == "ppo":
        check_ppo(config)
    if config.env.n_sim % config.actor.group_size:
        raise ConfigError(
            f"actor.group_size={config.actor.group_size}: must divide env.n_sim={config.env.n_sim} into equal groups"
        )


def check_ppo(config: Config) -> None:
    """Refuse what does not go together with several passes over a rollout."""
    if config.actor.kind != "lockstep":
        raise ConfigError(
            f"actor.kind={config.actor.kind}: algorithm.name=ppo learns from whole rollouts; use lockstep"
        )
    minibatches, updates = config.algorithm.minibatches, config.algorithm.minibatches * config.algorithm.passes
    if config.actor.n_steps % minibatches:
        raise ConfigError(f"algorithm.minibatches={minibatches}: must divide actor.n_steps={config.actor.n_steps}")
    if config.checkpoint.restart_games and config.checkpoint.every_updates % updates:
        raise ConfigError(
            f"checkpoint.every_updates={config.checkpoint.every_updates}: with checkpoint.restart_games it must be a"
            f" multiple of the {updates} updates that algorithm.passes × algorithm.minibatches take from a rollout"
        )


def check_ranks(config: Config, ranks: int) -> None:
    """Refuse a run that could not make a single update."""
    if config.comm.strategy == "backup" and config.comm.n_backup >= ranks:
        raise ConfigError(
            f"comm.n_backup={config.comm.n_backup}: an update needs at least one of the {ranks} ranks;"
            f" use at most {ranks - 1}"
        )
    slow = config.debug.slow_rank.partition(",")[0]
    if slow != "none" and (not slow.isdigit() or int(slow) >= ranks):
        raise ConfigError(f"debug.slow_rank={config.debug.slow_rank}: there is no rank {slow} among {ranks}")
    effective = config.batch_size * ranks
    if config.train.total_steps < effective:
        raise ConfigError(
            f"train.total_steps={config.train.total_steps}: is less than one update of {ranks} ranks × "
            f"{config.batch_size} data points = {effective}; raise it, or lower train.batch_size or env.n_sim"
        )
