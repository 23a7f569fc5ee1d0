"""train: whatever is typed, or written into its file, is taken or refused with a message; nothing else may happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dba3c import train
from dba3c.config.loading import HYPERPARAMS
from dba3c.config.messages import ConfigError

NAMES = [
    "preset",
    "game",
    "ranks",
    "run-dir",
    "env.game",
    "env.n_sim",
    "train.seed",
    "comm.n_backup",
    "debug.delays",
    "targets.pong",
]
VALUES = [
    *["0", "-1", "1e400", "nan", "null", "[1", "{a:b}", "!!python/object:os.system", "*x", "fast", "é", "1,2"],
    "",
    "\x00",
]
VALUE = st.sampled_from(VALUES) | st.text(max_size=8)
OPTIONS = st.sampled_from(NAMES).map("--{}".format) | st.builds("--{}={}".format, st.sampled_from(NAMES), VALUE)
MANY = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def refusal(work: Callable[[], object]) -> str:
    """The message, if it is refused."""
    try:
        work()
    except ConfigError as error:
        return str(error)
    return "taken"


@MANY
@given(st.lists(OPTIONS | st.text(max_size=12), max_size=5))
def test_any_command_line_is_taken_or_refused(argv: list[str]) -> None:
    assert refusal(lambda: train.parse(argv)).strip()


@MANY
@given(cut=st.floats(0, 1), inserted=st.binary(max_size=20))
def test_any_damage_to_the_file_is_taken_or_refused(tmp_path: Path, cut: float, inserted: bytes) -> None:
    """The real file with something inserted somewhere, or cut off there."""
    whole = HYPERPARAMS.read_bytes()
    place = int(cut * len(whole))
    for rest in (whole[place:], b""):
        (tmp_path / "file.yaml").write_bytes(whole[:place] + inserted + rest)
        assert refusal(lambda: train.parse([f"--config={tmp_path / 'file.yaml'}"])).strip()


@pytest.mark.parametrize("word", ["--run-dir=", "--run-dir= ", "--config="])
def test_an_empty_path_is_refused(word: str) -> None:
    assert "give it a name" in refusal(lambda: train.parse([word]))


def test_a_dry_run_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train.main(["breakout", "--ranks=4", "--dry-run"]) == 0
    assert "4 × 4 simulators = 16" in capsys.readouterr().out
    assert train.main(["--ranks=4", "--dry-run", "--comm.strategy=backup", "--comm.n_backup=4"]) == 2
    assert "at least one of the 4 ranks" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
