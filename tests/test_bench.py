"""bench: what it refuses, and how it compares."""

from __future__ import annotations

import pytest

from dba3c.bench import main, peer_rows


def test_ratio_is_of_medians() -> None:
    rows = peer_rows({"dba3c": [90.0, 300.0, 100.0], "other": [50.0, 40.0, 60.0]})
    assert [row["ratio"] for row in rows] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["scaling", "--actor.nsteps=20"], "actor.n_steps"),
        (["scaling", "--game=brekout"], "breakout"),
        (["scaling", "--comm.transport=horovod"], "compares the transports"),
        (["predict", "--comm.n_backup=1"], "comm.strategy=backup"),
        (["pipeline", "--actor.n_steps=20"], "not understood"),
    ],
)
def test_bad_input_is_told_before_any_rank_starts(
    words: list[str], remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    output = capfd.readouterr().err
    assert remedy in output
    assert output.count("dba3c bench:") == len(output.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["speed"], ["predict", "--nodes=0"], ["predict", "--nodes=many"], ["predict", "--network=2g"]]
)
def test_wrong_words_are_refused_and_repeated(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert words[-1].rpartition("=")[2] in capsys.readouterr().err
