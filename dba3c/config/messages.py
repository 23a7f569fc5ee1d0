"""Messages about bad input: one line that names the field, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic_core import ErrorDetails

from dba3c.config.schema import Config


class ConfigError(Exception):
    """Bad input, with a message of one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def shown(value: object) -> str:
    """Format a value for a message: cut to 80 characters, and without ever raising an error."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= 80 else text[:80] + "…"


def explain(errors: list[ErrorDetails]) -> str:
    """Return one line about the first field that pydantic rejects."""
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
    """Return the end of a message: the known words that are nearest, or a short list of all of them."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return "; did you mean " + " or ".join(prefix + name for name in near) + "?"
    return f"; known: {', '.join(prefix + name for name in names)}" if 0 < len(names) <= 20 else ""
