"""Synchronous distributed BA3C: agents trained on CPU clusters with MPI. The Python API; docs/python.md explains it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dba3c.api import Key, TrainedAgent, TrainingError, load, make_env, read_run, register, train
    from dba3c.config.messages import ConfigError

__version__ = "0.2.0"
__all__ = [
    "ConfigError", "Key", "TrainedAgent", "TrainingError", "load", "make_env", "read_run", "register", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for: neither TensorFlow nor MPI is loaded by `import dba3c`."""
    if name == "train":  # the module of the command, which can be called
        return import_module("dba3c.train")
    if name in __all__:
        return getattr(import_module("dba3c.api"), name)
    raise AttributeError(f"module 'dba3c' has no attribute {name!r}")
