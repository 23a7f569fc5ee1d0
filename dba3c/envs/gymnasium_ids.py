"""Names of gymnasium's environments, and the packages that they come from."""

from __future__ import annotations

import re
import sys
from importlib import metadata

import gymnasium
from gymnasium.envs.registration import EnvSpec

from dba3c.config.messages import ConfigError, cut, shown, suggest
from dba3c.config.schema import Env

SIMULATORS = ("gymnasium", "mujoco", "box2d")  # distributions whose versions decide how an environment behaves
VERSIONED = re.compile(r".+-v\d+")


def is_like_an_id(name: str) -> bool:
    """Say whether somebody who wrote this, and means no Atari game, means an environment of gymnasium."""
    return ":" in name or bool(VERSIONED.fullmatch(name)) or registered(name) is not None


def resolve_id(name: str, field: str) -> str:
    """Return the registered id of an environment, which may be written cartpole, CartPole or CartPole-v1."""
    package = package_of(name)
    return f"{package}:{spec_of(name, field).id}" if package else spec_of(name, field).id


def spec_of(name: str, field: str) -> EnvSpec:
    """Find a registered environment; ConfigError if there is none.

    The package of package:Name-v0 must have been imported: no file may name code that is then executed.
    """
    package, _, plain = name.rpartition(":")
    if package and package not in sys.modules:
        raise ConfigError(
            f"{field}={shown(name)}: its package was not loaded; name it on the command line, --plugin={cut(package)}"
        )
    found = registered(plain)
    if found is None:
        near = suggest(plain, gymnasium.registry) or "; write Name-v0, or package:Name-v0 for one of another package"
        raise ConfigError(f"{field}={shown(name)}: no such environment in gymnasium{near}")
    return found


def package_of(name: str) -> str:
    """Return the package that registers an environment, package:Name-v0; empty if the name has none."""
    return name.rpartition(":")[0]


def registered(name: str) -> EnvSpec | None:
    """Find an environment by its id, in any case of letters; without a version, the newest there is."""
    ids = {known.lower(): known for known in gymnasium.registry}
    if name.lower() in ids:
        return gymnasium.registry[ids[name.lower()]]
    same = [spec for spec in gymnasium.registry.values() if unversioned(spec) == name.lower()]
    return max(same, key=lambda spec: spec.version or 0, default=None)


def unversioned(spec: EnvSpec) -> str:
    return (f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name).lower()


def package_versions(config: Env) -> dict[str, str]:
    """Return the versions of the packages that decide how the environment behaves, on every rank alike."""
    own = package_of(config.game).partition(".")[0]
    versions = {}
    for name in (*SIMULATORS, *filter(None, [own])):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
