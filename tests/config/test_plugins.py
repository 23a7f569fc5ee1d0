"""Plug-ins: files that register parts with keys of their own, and what happens when they are wrong or missing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from dba3c.config import comparison, loading, plugins
from dba3c.config.comparison import differences
from dba3c.config.messages import ConfigError, MissingPluginError, UnknownKeyError
from dba3c.config.names import KEYS, PARTS, find
from dba3c.config.plugins import LOADED, PluginError, extended
from dba3c.config.schema import Config
from tests.fakes import registry

TEXT = """
import dba3c
from dba3c.config.values import Fraction

class Slow: ...

dba3c.register("algorithm.name", "slow", Slow, {"brake": dba3c.Key(0.25, Fraction, "how slow")})
"""
SLOW = ["algorithm.name=slow", "algorithm.brake=0.5"]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.restored():
        yield


def plugin(folder: Path, text: str = TEXT) -> str:
    path = folder / "slow.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def slow(folder: Path, *overrides: str) -> Config:
    plugins.load([plugin(folder)])
    return loading.load("paper", [*SLOW, *overrides])


def test_a_part_and_its_typed_key_are_known_once_the_file_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(UnknownKeyError, match=r"algorithm\.brake"):
        loading.load("paper", ["algorithm.brake=0.5"])
    config = slow(tmp_path)
    assert config.flat()["algorithm.brake"] == 0.5
    assert find("algorithm.name", "slow").__name__ == "Slow"
    assert loading.load("paper").flat()["algorithm.brake"] == 0.25


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algorithm.brake=1", r"algorithm.brake=1: input should be less than 1"),
        ("algorithm.brake=x", r"algorithm.brake='x'"),
        ("algorithm.break=0", r"algorithm.break: no such key; did you mean algorithm.brake"),
    ],
)
def test_a_wrong_value_of_an_own_key_is_refused_in_one_line(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        slow(tmp_path, override)


def test_the_configuration_goes_from_rank_to_rank_and_into_a_file(tmp_path: Path) -> None:
    config = slow(tmp_path)
    assert pickle.loads(pickle.dumps(config)) == config
    assert loading.parse(config.dump()) == config
    plain = loading.load("paper", ["algorithm.name=a3c"])
    assert pickle.loads(pickle.dumps(plain)) == plain


def test_the_hash_of_the_file_is_part_of_the_configuration(tmp_path: Path) -> None:
    before = slow(tmp_path)
    LOADED.clear()
    LOADED["slow"] = "0" * 16  # as on another rank, or after an edit
    (change,) = differences(before, loading.load("paper", SLOW))
    assert change == f"plugins.slow: '{before.plugins['slow']}' → '0000000000000000'"


def test_a_run_names_the_plugin_that_is_missing(tmp_path: Path) -> None:
    saved = slow(tmp_path).dump()
    PARTS["algorithm.name"].pop("slow")
    KEYS.clear()
    LOADED.clear()
    with pytest.raises(MissingPluginError, match=r"trained with the plug-in slow; add --plugin slow\.py"):
        loading.parse(saved)


def test_the_command_of_a_run_names_its_plugin(tmp_path: Path) -> None:
    command = comparison.recipe(slow(tmp_path)).command(1, "runs/x", [0])
    assert "--algorithm.name=slow --algorithm.brake=0.5 --plugin slow.py" in command


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_like_that", r"slow\.py, line 1: ModuleNotFoundError"),
        ("\n1 / 0", r"slow\.py, line 2: ZeroDivisionError"),
        ("def (", r"SyntaxError"),
        ("import dba3c\ndba3c.register('algorithm.name', 'a3c', object)", "algorithm.name=a3c exists already"),
        (
            "import dba3c\ndba3c.register('algorithm', 'x', object)",
            "'algorithm' names no exchangeable part; known: env",
        ),
        (
            "import dba3c\ndba3c.register('algorithm.name', 'x', object, {'gamma': dba3c.Key(1, int, '')})",
            "algorithm.gamma: is a key of dba3c",
        ),
        (
            "import dba3c\nfor x in 'xy': dba3c.register('algorithm.name', x, object, {'k': dba3c.Key(1, int, '')})",
            "algorithm.k: another part has this key",
        ),
    ],
)
def test_a_broken_plugin_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PluginError, match=message) as caught:
        plugins.load([plugin(tmp_path, text)])
    assert str(caught.value).startswith(f"--plugin={tmp_path / 'slow.py'}: ")


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(PluginError, match=r"--plugin=nothing.py: there is no such file"):
        plugins.load(["nothing.py"])


def test_installed_plugins_are_loaded_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed_slow.py").write_text(TEXT, encoding="utf-8")
    information = tmp_path / "slow-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: slow\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text("[dba3c.plugins]\nslow = installed_slow\n", encoding="utf-8")
    assert not plugins.wanted([])
    monkeypatch.syspath_prepend(tmp_path)
    assert [point.name for point in metadata.entry_points(group=plugins.GROUP)] == ["slow"]
    assert plugins.wanted([])
    plugins.load()
    plugins.load()  # once is enough
    assert loading.load("paper", SLOW).plugins.keys() == {"slow"}


def test_help_lists_the_keys_of_plugins(tmp_path: Path) -> None:
    assert plugins.described() == ""
    plugins.load([plugin(tmp_path)])
    assert "--algorithm.brake=0.25" in plugins.described()
    assert "how slow" in plugins.described()
    assert extended() is extended()
