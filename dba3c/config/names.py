"""The names that the configuration accepts for exchangeable parts, and where each part lives.

A new part is one file and one line here, or a plug-in that calls `register`. A part of dba3c is imported when it is
asked for, so that reading a configuration loads neither TensorFlow nor MPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

PARTS: dict[str, dict[str, object]] = {  # key of the configuration → name → module:attribute, or a plug-in's part
    "env.profile": {
        "paper": "dba3c.envs.paper:PaperEnv",
        "deepmind": "dba3c.envs.deepmind:DeepMindEnv",
        "catch": "dba3c.envs.catch:CatchEnv",
        "gymnasium": "dba3c.envs.gymnasium_env:GymnasiumEnv",
    },
    "model.torso": {
        "ba3c": "dba3c.networks.torsos:ba3c",
        "ba3c_linear": "dba3c.networks.torsos:ba3c_linear",
        "nips": "dba3c.networks.torsos:nips",
        "nature": "dba3c.networks.torsos:nature",
        "ga3c": "dba3c.networks.torsos:ga3c",
        "mlp": "dba3c.networks.torsos:mlp",
        "mlp_relu": "dba3c.networks.torsos:mlp_relu",
    },
    "actor.kind": {
        "async": "dba3c.actors.asynchronous:make",
        "lockstep": "dba3c.actors.lockstep:make",
        "episodes": "dba3c.actors.lockstep:make",
    },
    "algorithm.name": {
        "a3c": "dba3c.learning.a3c:A3C",
        "ppo": "dba3c.learning.ppo:PPO",
        "q": "dba3c.learning.q:Q",
    },
    "optimizer.name": {
        "adam": "dba3c.learning.optimizers:ADAM",
        "rmsprop": "dba3c.learning.optimizers:RMSPROP",
        "sgd": "dba3c.learning.optimizers:SGD",
        "adagrad": "dba3c.learning.optimizers:ADAGRAD",
        "momentum_sgd": "dba3c.learning.optimizers:MOMENTUM_SGD",
    },
    "comm.strategy": {
        "allreduce": "dba3c.comm.allreduce:AllReduce",
        "backup": "dba3c.comm.backup:Backup",
        "server": "dba3c.comm.server:sharded",
        "hogwild": "dba3c.comm.hogwild:hogwild",
    },
    "comm.transport": {
        "mpi": "dba3c.comm.mpi:MpiTransport",
        "horovod": "dba3c.comm.horovod:HorovodTransport",
    },
}


class Key(NamedTuple):
    """A key that a part brings along, in its section of the configuration."""

    default: object
    type: Any  # what pydantic accepts as one, such as the types of schema.py
    meaning: str  # for --help


KEYS: dict[str, Key] = {}  # section.key → what plug-ins have added
NO_KEYS: Mapping[str, Key] = MappingProxyType({})


def register(key: str, name: str, part: object, keys: Mapping[str, Key] = NO_KEYS) -> None:
    """Add a part under a name that `key` then accepts, and its own keys to the section; for plug-ins."""
    section = key.partition(".")[0]
    if key not in PARTS:
        raise ValueError(f"{key!r} names no exchangeable part; known: {', '.join(PARTS)}")
    if name in PARTS[key]:
        raise ValueError(f"{key}={name} exists already; choose another name")
    added = {f"{section}.{own}": Key(*about) for own, about in keys.items()}
    for twice in added.keys() & KEYS.keys():
        raise ValueError(f"{twice}: another part has this key; choose another name")
    PARTS[key][name] = part
    KEYS.update(added)


def find(key: str, name: str) -> Any:  # each key has its own Protocol, which the caller states
    """Import the part that a key of the configuration names."""
    part = PARTS[key][name]
    if not isinstance(part, str):
        return part
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute)


def check(key: str, name: str) -> str:
    """Return a name that a key accepts; ValueError, with the names there are, for any other."""
    if name not in PARTS[key]:
        *most, last = (f"'{known}'" for known in PARTS[key])
        raise ValueError(f"input should be {', '.join(most)} or {last}")
    return name
