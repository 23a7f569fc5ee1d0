"""The ranks that train together: what a failure ends, and how the survivors continue."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dba3c.job.exit import EXIT_LOST
from dba3c.run_files.progress import Progress
from dba3c.training import ranks as module
from dba3c.training.ranks import Ranks
from dba3c.types import Gradient, Stop, Transport, Update
from tests.fakes.settings import settings
from tests.fakes.thread_ranks import ThreadRank, on_survivors
from tests.fakes.worlds import world


class Idle:
    """A strategy that only knows whom it works with."""

    def __init__(self, transport: Transport, equal_weights: bool = True) -> None:
        self.transport = transport
        self.equal_weights = equal_weights
        self.closed = False

    def update(self, _gradient: Gradient | None, _stop: Stop) -> list[Update]:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


@dataclass
class Memory:
    """A state that is only its progress."""

    run_dir: Path
    progress: Progress = field(default_factory=Progress)
    saves: list[bool] = field(default_factory=list)

    def snapshot(self) -> Progress:
        return self.progress

    def restore(self, saved: Progress) -> None:
        self.progress = Progress(updates=saved.updates, steps=saved.steps)

    def save_now(self, equal_weights: bool) -> str:
        self.saves.append(equal_weights)
        return "saved update 7"


@pytest.fixture
def aborted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    codes: list[int] = []
    monkeypatch.setattr(module, "abort", lambda _comm, code: codes.append(code))
    return codes


def ranks_of(memory: Memory, transport: ThreadRank | None = None, size: int = 1, *more: str) -> Ranks:
    config = settings("env.n_sim=4", "actor.n_steps=5", *more)
    rank = transport.rank if transport else 0
    found = Ranks(world(rank, size), config, Idle, memory, lambda _: None)  # type: ignore[arg-type]
    if transport is not None:
        found.transport = transport
        found.strategy = Idle(transport)
    return found


@pytest.mark.parametrize("here", [True, False])
def test_a_failure_is_saved_named_and_ends_the_job(
    here: bool, tmp_path: Path, aborted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A rank on another host may not see the run directory: it must not make one of its own."""
    if here:
        (tmp_path / "checkpoints").mkdir()
    memory = Memory(tmp_path)
    found = ranks_of(memory)
    found.start()
    found.end_job("rank 1 on b is dead")
    assert aborted == [EXIT_LOST]
    assert memory.saves == [True] * here
    saved = "saved update 7" if here else "nothing could be saved"
    assert capsys.readouterr().err == (
        f"dba3c: rank 0 on a: rank 1 on b is dead; the job ends\ndba3c: rank 0 on a: {saved} in {tmp_path}\n"
    )


def test_a_strategy_whose_weights_differ_is_not_saved_between_meetings(tmp_path: Path, aborted: list[int]) -> None:
    (tmp_path / "checkpoints").mkdir()
    memory = Memory(tmp_path)
    found = ranks_of(memory)
    found.strategy = Idle(found.transport, equal_weights=False)
    found.end_job("the network is cut")
    assert (memory.saves, aborted) == ([False], [EXIT_LOST])


def test_survivors_continue_from_the_newest_update_that_one_of_them_has(tmp_path: Path) -> None:
    """Of four ranks, 0 and 2 are left; rank 2 has seen update 8, which rank 0 has not."""

    def shrunk(transport: ThreadRank) -> tuple[Ranks, Memory, str]:
        memory = Memory(tmp_path, Progress(updates=8 if transport.rank == 2 else 7, steps=70))
        found = ranks_of(memory, transport, size=4)
        before = found.strategy
        notice = found.shrink()
        assert isinstance(before, Idle)
        assert before.closed
        return found, memory, notice

    outcomes = on_survivors(4, [0, 2], shrunk)
    assert [memory.progress.updates for _, memory, _ in outcomes] == [8, 8]
    assert [found.world.rank for found, _, _ in outcomes] == [0, 1]
    for found, _, notice in outcomes:
        assert found.world.hosts == ["a", "c"]
        assert found.failed == ["rank 1 on b", "rank 3 on d"]
        assert notice == (
            "rank 1 on b, rank 3 on d failed in update 9: training continues on 2 of 4 ranks, with 40 samples per"
            " update instead of 80"
        )
        found.stop()


def test_ranks_are_named_with_their_hosts(tmp_path: Path) -> None:
    found = ranks_of(Memory(tmp_path), size=3)
    assert found.names([0, 2]) == "rank 0 on a, rank 2 on c"
    assert found.first


def test_a_disk_that_hangs_does_not_keep_the_job_from_ending(
    tmp_path: Path, aborted: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The watchdog speaks before it saves, and saves for a limited time."""
    (tmp_path / "checkpoints").mkdir()
    memory = Memory(tmp_path)
    monkeypatch.setattr(memory, "save_now", lambda _equal: threading.Event().wait() and "")
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.1)
    found = ranks_of(memory)
    found.start()
    found.end_job("rank 0 on a has been saving for 600 s")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "dba3c: rank 0 on a: rank 0 on a has been saving for 600 s; the job ends"
    assert "nothing could be saved within 0.1 s, the last regular save counts" in second
    assert aborted == [EXIT_LOST]


def test_when_only_ranks_without_simulators_are_left_the_job_ends(
    tmp_path: Path, aborted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three ranks, the first two serve weights and the third has failed; training would never get on."""

    def shrunk(transport: ThreadRank) -> Ranks:
        served = "comm.strategy=server", "comm.servers=2", "comm.dedicated=true"
        found = ranks_of(Memory(tmp_path), transport, 3, *served)
        assert found.idle == (0, 1)
        found.shrink()
        return found

    for found in on_survivors(3, [0, 1], shrunk):
        found.stop()
    assert aborted == [EXIT_LOST]
    said = capsys.readouterr().err.splitlines()[0]
    assert said == "dba3c: rank 0 on a: no rank with simulators is left after rank 2 on c failed; the job ends"


def test_ranks_keep_their_numbers_when_others_fail(tmp_path: Path) -> None:
    """Of four ranks, 1 fails first; of the remaining 0, 2, 3, the one in the middle, which MPI calls 1 by then."""

    def shrunk(transport: ThreadRank) -> Ranks:
        found = ranks_of(Memory(tmp_path), transport, size=4)
        found.shrink()
        return found

    survivors = on_survivors(4, [0, 2, 3], shrunk)
    for found in survivors:
        found.stop()
    before = survivors[0]
    assert before.names([0, 1, 2]) == "rank 0 on a, rank 2 on c, rank 3 on d"

    def shrunk_again(transport: ThreadRank) -> Ranks:
        found = ranks_of(Memory(tmp_path), transport, size=3)
        found.world = before.world._replace(rank=transport.rank)
        found.shrink()
        return found

    for found in on_survivors(3, [0, 2], shrunk_again):
        assert found.failed == ["rank 2 on c"]
        assert found.world.names == ["rank 0 on a", "rank 3 on d"]
        assert found.world.numbers == (0, 3)
        found.stop()
