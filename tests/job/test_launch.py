"""mpirun's options, its own messages, and the exit code of a job that it ran."""

from __future__ import annotations

import signal

import pytest

from dba3c.job import launch
from dba3c.job.exit import EXIT_LOST, EXIT_STOPPED

RULE = b"-" * 74 + b"\n"
BOX = [RULE, b"prterun detected that one or more processes exited with non-zero\n", b"status, thus\n", RULE]
KILLED = [RULE, b"prterun noticed that process rank 1 exited on signal 9 (Killed).\n", RULE]


def test_only_open_mpi_gets_its_own_options() -> None:
    assert launch.options(3, open_mpi=True) == ["-np", "3", "--bind-to", "none", "--oversubscribe"]
    assert launch.options(3, open_mpi=False) == ["-np", "3"]


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, False), ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, False), ({"SLURM_STEP_NUM_TASKS": "4"}, True),
        ({"OMPI_COMM_WORLD_RANK": "0"}, True), ({"PMI_RANK": "1"}, True),
    ],
)  # fmt: skip
def test_a_rank_knows_that_it_is_one(environment: dict[str, str], rank: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launch.is_rank() is rank


def test_messages_of_mpirun_about_what_ranks_have_said_are_dropped() -> None:
    said = [b"saved\n", b"\n"]
    gone = b"[vm:1] PMIX ERROR: PMIX_ERR_UNREACH in file pmix_server.c at line 3146\n"
    assert list(launch.without_boxes([*said, gone])) == said
    assert list(launch.without_boxes([*said, *BOX, b"after\n"])) == [*said, b"after\n"]
    assert list(launch.without_boxes([*said, *BOX[:3]])) == said  # mpirun was killed before it had said all


def test_other_messages_of_mpirun_are_shown() -> None:
    assert list(launch.without_boxes([*KILLED, b"after\n"])) == [*KILLED, b"after\n"]
    endless = [RULE, *[b"line\n"] * 100]
    assert list(launch.without_boxes(endless)) == endless


@pytest.mark.parametrize(
    ("code", "noted", "asked", "expected"),
    [
        (0, 0, False, 0), (EXIT_STOPPED, EXIT_STOPPED, True, EXIT_STOPPED), (EXIT_LOST, None, False, EXIT_LOST),
        (1, None, False, 1), (1, EXIT_STOPPED, True, EXIT_STOPPED),  # mpirun's own code for a signal
        (-signal.SIGKILL, None, False, 137), (137, EXIT_STOPPED, False, 137),
        (-signal.SIGTERM, EXIT_STOPPED, False, EXIT_STOPPED),
        (128 + signal.SIGUSR1, None, True, EXIT_STOPPED), (128 + signal.SIGUSR1, None, False, 138),
        (-signal.SIGUSR1, None, True, EXIT_STOPPED),  # before mpirun listened
    ],
)  # fmt: skip
def test_the_exit_code_is_that_of_the_ranks(code: int, noted: int | None, asked: bool, expected: int) -> None:
    assert launch.known(code, noted, asked) == expected
