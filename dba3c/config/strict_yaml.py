"""yaml from outside: plain values only, no key twice, and never larger in memory than it looks."""

from __future__ import annotations

import math

import yaml

from dba3c.config.messages import ConfigError, shown

MOST_BYTES = 200_000  # of text; hyperparams.yaml has a twentieth of it
MOST_VALUES = 100_000  # with every alias written out


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which checks a document before it makes anything of it."""

    def construct_document(self, node: yaml.Node) -> object:
        if count_values(node, {}) > MOST_VALUES:
            raise ConfigError(
                f"stands for more than {MOST_VALUES:,} values; write its values out instead of using so many aliases"
            )
        return super().construct_document(node)


def parse_yaml(text: str, where: str) -> object:
    """Parse yaml; ConfigError that begins with `where` if the text is not yaml, or more of it than anybody needs."""
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{where}: holds more than {MOST_BYTES:,} bytes; shorten it")
    try:
        parsed: object = yaml.load(text, Loader)
        return parsed
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    except Exception as error:  # besides YAMLError, PyYAML raises ValueError, KeyError, RecursionError and others
        raise ConfigError(f"{where}: is not yaml: {error}") from None


def count_values(node: yaml.Node, known: dict[yaml.Node, float]) -> float:
    """Count the values of a node with every alias written out; ConfigError if it has a key twice."""
    if node not in known:
        known[node] = math.inf  # until it is counted: what holds itself has no end
        known[node] = 1 + sum(count_values(part, known) for part in parts(node))
    return known[node]


def parts(node: yaml.Node) -> list[yaml.Node]:
    """List what a node holds: items, or keys and values."""
    if isinstance(node, yaml.MappingNode):
        refuse_same_keys([key for key, _ in node.value])
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def refuse_same_keys(keys: list[yaml.Node]) -> None:
    """Raise ConfigError for a key that one mapping has twice: the first value would be lost without a word."""
    first: dict[tuple[str, str], yaml.Node] = {}
    for key in keys:
        if isinstance(key, yaml.ScalarNode) and first.setdefault((key.tag, key.value), key) is not key:
            lines = f"{first[key.tag, key.value].start_mark.line + 1} and {key.start_mark.line + 1}"
            raise ConfigError(f"the key {shown(key.value)} is written twice, in lines {lines}; keep one of them")
