"""yaml from outside: what grows when it is read, is written twice or is too long is refused before it does harm."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dba3c.config import loading
from dba3c.config.messages import ConfigError, shown
from dba3c.config.strict_yaml import MOST_BYTES, parse_yaml

LEVELS = range(1, 9)
ALIAS_BOMB = "a0: &a0 [lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in LEVELS)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in LEVELS)


def refused(text: str) -> str:
    """The message, which took little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError) as error:
            parse_yaml(text, "--config=mine.yaml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30e6
    return str(error.value)


@pytest.mark.parametrize("text", [ALIAS_BOMB, MERGE_BOMB, "a: &a [*a]"], ids=["aliases", "merges", "endless"])
@pytest.mark.fault(39, "yaml alias bomb", "refused in one line, code 2, within 30 MB of memory")
def test_aliases_that_multiply_are_refused(text: str) -> None:
    assert "write its values out instead of using so many aliases" in refused(text)


def test_aliases_that_save_some_typing_are_fine() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: *a"
    assert parse_yaml(text, "") == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: {}\nmodel: {}\nenv: {}\n", "the key 'env' is written twice, in lines 1 and 3; keep one of them"),
        ("env:\n  n_sim: 1\n  n_sim: 2\n", "the key 'n_sim' is written twice, in lines 2 and 3; keep one of them"),
        ("{? [a, b] : 1}", "is not yaml"),
    ],
)
@pytest.mark.fault(39, "yaml key written twice", "refused in one line, code 2; the key and both lines are named")
def test_a_key_that_is_written_twice_is_named(text: str, message: str) -> None:
    assert refused(text).startswith("--config=mine.yaml: ")
    assert message in refused(text)


def test_too_much_text_is_not_even_parsed(tmp_path: Path) -> None:
    assert f"holds more than {MOST_BYTES:,} bytes" in refused("#" * (MOST_BYTES + 1))
    path = tmp_path / "long.yaml"
    path.write_text("#" * (MOST_BYTES + 1), encoding="utf-8")
    for endless in (path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match=f"--config={endless}: .*holds more than"):
            loading.load(path=endless)


@pytest.mark.parametrize("field", ["env.game", "targets.pong", "train.total_steps", "model", "nonsense"])
def test_a_bomb_on_the_command_line_is_refused_at_once(field: str) -> None:
    small = "[&a [x,x,x,x,x,x,x,x], &b [*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b], [*c,*c,*c,*c,*c]]"
    for value in (small, "{" + ", ".join(ALIAS_BOMB.splitlines()) + "}"):
        with pytest.raises(ConfigError) as error:
            loading.load("paper", [f"{field}={value}" if "." in field else f"{field}.x={value}"])
        assert len(str(error.value)) < 700


def test_a_value_is_cut_before_it_is_printed() -> None:
    twig: object = "x" * 1000
    for _ in range(30):
        twig = [twig] * 9  # 9 ** 30 leaves, if they were all printed
    assert len(shown(twig)) <= 81
    assert shown({"a": [1, 2]}) == "{'a': [1, 2]}"
    assert shown(10**5000) == "a int too large to print"
    assert len(str(ConfigError("x" * 10_000))) < 1100
    assert str(ConfigError("a\n b\x1b[31m\udc80 c")) == "a b�[31m� c"
