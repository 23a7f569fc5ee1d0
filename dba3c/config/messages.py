"""Messages about bad input: one line that names the field, the value and the remedy."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

from pydantic_core import ErrorDetails

from dba3c.config.plugins import extended

MOST_LETTERS = 1000  # of a message
SHORT_LIST = 30  # names that a message may list
BRIEF = reprlib.Repr()  # stops where a value gets large: with aliases, a few bytes of yaml stand for gigabytes
BRIEF.maxlevel = 4
BRIEF.maxstring = 1000
BRIEF.maxlong = 1000
BRIEF.maxother = 1000


class ConfigError(Exception):
    """Bad input, with a message of one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class UnknownKeyError(ConfigError):
    """A key that this version does not have."""


class MissingPluginError(ConfigError):
    """Parts or keys that a plug-in has to register."""


def one_line(text: str) -> str:
    """Return a text as a terminal may show it: one line of printable letters, cut to MOST_LETTERS."""
    words = " ".join(cut(text, 2 * MOST_LETTERS).split())
    return cut("".join(letter if letter.isprintable() else "�" for letter in words), MOST_LETTERS)


def cut(text: str, most: int = 80) -> str:
    """Cut a text that is longer than anybody reads."""
    return text if len(text) <= most else text[:most] + "…"


def shown(value: object) -> str:
    """Format a value for a message: cut to 80 characters, and without ever raising an error."""
    try:
        return cut(BRIEF.repr(value))
    except ValueError:  # an integer of more digits than Python prints
        return f"a {type(value).__name__} too large to print"


def explain(errors: list[ErrorDetails]) -> str:
    """Return one line about the first field that pydantic rejects."""
    error = errors[0]
    path = [cut(str(part)) for part in error["loc"][:2]]
    name = ".".join(path)
    if error["type"] == "extra_forbidden":
        config = extended()
        section = config.model_fields.get(path[0])
        annotation = section.annotation if section and len(path) == 2 else config
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
    near = nearest(word, names, cutoff=0.6)
    if near:
        return "; did you mean " + " or ".join(prefix + name for name in near) + "?"
    return f"; known: {', '.join(prefix + name for name in names)}" if 0 < len(names) <= SHORT_LIST else ""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.75) -> list[str]:
    """Return at most three known words that are like this one, the most alike first."""
    return difflib.get_close_matches(word, list(known), n=3, cutoff=cutoff)
