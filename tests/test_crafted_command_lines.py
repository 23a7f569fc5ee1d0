"""Command lines and configurations that somebody crafted: each is taken, or refused in one line.

All 2,000 of them: make crafted
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from dba3c import evaluate, export, record, report, results, train
from dba3c.config import consistency
from dba3c.config.loading import HYPERPARAMS
from dba3c.config.messages import ConfigError
from dba3c.envs import resolve_title
from dba3c.run_files import trained_agents
from dba3c.training.injected import planned
from tests.conftest import Happened
from tests.fakes.memory import peak_of

COUNT = 2000 if os.environ.get("CRAFTED") == "all" else 400
MOST_MEMORY = 100e6  # bytes
Dice = random.Random
SECTIONS = yaml.safe_load(HYPERPARAMS.read_text(encoding="utf-8"))
PLAIN = yaml.safe_dump(SECTIONS, sort_keys=False)
NAMES = [f"{section}.{key}" for section, keys in SECTIONS.items() if section != "presets" for key in keys]
BOMB = "{a: &a [x,x,x,x,x,x,x,x,x], " + ", ".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
) + "}"  # fmt: skip
ODD = (
    "", " ", "0", "-1", "1", "2.5", "1e18", "1e400", "-1e400", "nan", ".inf", "9" * 5000, "0x" + "f" * 5000, "1:30:00",
    "x" * 100_000, "\0", "\x1b[2J", "é", "\udcff", "null", "~", "true", "[]", "{}", "[" * 500, "{a: 1, a: 2}",
    "!!python/object/apply:os.system [true]", "!!binary x", "!!timestamp x", "2001-99-99", "<<: 1", "%s", "$(true)",
    "&a [*a]", "*x", "../../x", "/dev/zero", "/dev/null", "combat", "SpaceInvaders", "1,2", "9" * 5000 + ",1", "auto",
    "none", "lockstep",
    BOMB, "'", '"', "a\nb", "- -", "--", "-h=", "=", "==", ".", "..", "a.b", "a.b=c", "?", "\u202e", "１２", "0" * 5000,
)  # fmt: skip
OPTIONS = {
    train: ("--preset", "--game", "--run-dir", "--config", "--ranks", "--dry-run"),
    evaluate: ("--pretrained", "--games", "--seed", "--json"),
    record: ("--pretrained", "--games", "--seed", "--out", "--start", "--seconds", "--best"),
    export: ("--out", "--logs"),
    report: ("--out",),
    results: (),
}


def odd_word(dice: Dice, options: tuple[str, ...]) -> str:
    name = dice.choice((*options, *(f"--{name}" for name in dice.sample(NAMES, 6)), "--x.y", "--", "-x", "--env", ""))
    return dice.choice((f"{name}={dice.choice(ODD)}", f"{name}={dice.choice(ODD)}", name, dice.choice(ODD)))


def understand(verb: object, words: list[str]) -> object:
    """Do all that a verb does with its words before it works."""
    if verb is train:
        order = train.parse(words)
        consistency.check_ranks(order.config, 4)
        return order
    if verb is evaluate:
        return trained_agents.chosen(evaluate.parser().parse_args(words), resolve_title)
    if verb is record:
        options = record.parser().parse_args(words)
        record.refuse_bad_options(options)
        return trained_agents.chosen(options, resolve_title)
    return verb.parser().parse_args(words)  # type: ignore[attr-defined]


def assert_taken_or_refused(work: Callable[[], object]) -> int:
    """Return the memory that it took."""

    def tried() -> None:
        try:
            work()
        except ConfigError as refusal:
            text = str(refusal)
            assert len(text) < 1100
            assert text.isprintable(), text

    peak = peak_of(tried)
    assert peak < MOST_MEMORY
    return peak


@pytest.mark.parametrize("part", range(4))
@pytest.mark.fault(39, "crafted command lines")
def test_crafted_command_lines_are_taken_or_refused(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch, happened: Happened
) -> None:
    monkeypatch.chdir(tmp_path)
    peaks = [0]
    for number in range(part, COUNT // 2, 4):
        dice = Dice(number)
        verb = dice.choice([train, train, train, *OPTIONS])
        words = [odd_word(dice, OPTIONS[verb]) for _ in range(dice.choice((1, 1, 2, 4)))]
        if not {"-h", "--help"} & set(words):
            peaks += [assert_taken_or_refused(partial(understand, verb, words))]
        peaks += [assert_taken_or_refused(partial(planned, f"{dice.choice(ODD)}:{dice.choice(ODD)}:kill"))]
    assert not list(tmp_path.iterdir())
    print(f"{COUNT // 2} command lines, part {part + 1} of 4: at most {max(peaks) / 1e6:.0f} MB each")
    happened(f"{COUNT // 2}: each accepted or refused in one line")


def odd_yaml(dice: Dice) -> bytes:
    lines = PLAIN.splitlines()
    for _ in range(dice.choice((1, 1, 3))):
        place = dice.randrange(len(lines))
        name = lines[place].partition(":")[0]
        odd = dice.choice(ODD)
        lines[place] = dice.choice((f"{name}: {odd}", f"{name}: {odd}", odd, f"{lines[place]}\n{lines[place]}", ""))
    data = bytearray("\n".join(lines).encode("utf-8", "surrogateescape"))
    if dice.random() < 0.3:
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.1 else data)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.fault(39, "crafted yaml files")
def test_crafted_configurations_are_taken_or_refused(tmp_path: Path, part: int, happened: Happened) -> None:
    file = tmp_path / "mine.yaml"
    peaks = [0]
    for number in range(part, COUNT // 2, 4):
        dice = Dice(number)
        file.write_bytes(odd_yaml(dice))
        peaks += [assert_taken_or_refused(partial(understand, train, [f"--config={file}", "--preset=a2c"]))]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    print(f"{COUNT // 2} yaml files, part {part + 1} of 4: at most {max(peaks) / 1e6:.0f} MB each")
    happened(f"{COUNT // 2}: each accepted or refused in one line")
