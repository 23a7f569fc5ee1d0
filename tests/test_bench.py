"""The command line of the benchmarks."""

from __future__ import annotations

import pytest

from dba3c import tune
from dba3c.bench import main, parse
from dba3c.config import loading


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["scaling", "--actor.nsteps=20"], "actor.n_steps"),
        (["scaling", "--game=brekout"], "breakout"),
        (["scaling", "--comm.transport=horovod"], "compares the transports"),
        (["predict", "--comm.n_backup=1"], "comm.strategy=backup"),
        (["pipeline", "--actor.n_steps=20"], "not understood"),
        (["pipeline", "--preset=a3c-continuous"], "bench control measures such tasks"),
        (["pipeline", "--preset=ppo"], "paper, paper-pong, paper-async, a2c, fast"),
        (["predict", "--preset=papper"], "paper"),
    ],
)
def test_bad_input_is_refused_before_any_rank_starts(
    words: list[str], remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    output = capfd.readouterr().err
    assert remedy in output
    assert output.count("dba3c bench:") == len(output.splitlines()) == 1


@pytest.mark.parametrize("command", ["pipeline", "scaling", "predict"])
def test_every_preset_that_makes_one_update_from_a_segment_can_be_measured(command: str) -> None:
    several = {"ppo", "ppo-lstm", "ppo-control", "a3c-continuous", "q-lambda", "dqn", "gorila"}
    for preset in set(loading.preset_names()) - several:
        assert parse([command, f"--preset={preset}"]).preset == preset


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["speed"]) == 2
    assert "speed" in capsys.readouterr().err
    assert tune.main(["--seconds=x"]) == 2
