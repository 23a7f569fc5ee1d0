"""The watchdog's judgement, on ranks that are threads of this process and a network that can be cut."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

import pytest

from dba3c.comm import watchdog
from dba3c.comm.watchdog import Watchdog
from tests.fakes import waiting

LIMIT = 0.6  # seconds
HOSTS = ["a", "b", "c"]


class Wires:
    """Notes between the ranks; a rank in `silent` is heard by nobody."""

    def __init__(self) -> None:
        self.queues: list[queue.SimpleQueue[tuple[int, object]]] = [queue.SimpleQueue() for _ in HOSTS]
        self.silent: set[int] = set()


class Notes:
    def __init__(self, wires: Wires, rank: int) -> None:
        self._wires, self.rank, self.pause = wires, rank, 0.0

    def send(self, rank: int, note: object) -> None:
        if self.rank not in self._wires.silent:
            self._wires.queues[rank].put((self.rank, note))

    def receive(self) -> tuple[int, object] | None:
        pause, self.pause = self.pause, 0.0
        time.sleep(pause)
        try:
            return self._wires.queues[self.rank].get_nowait()
        except queue.Empty:
            return None


class Scene:
    """A watchdog per rank, and what they said."""

    def __init__(self, limit: float = LIMIT, start_seconds: float = float("inf")) -> None:
        self.wires, self.failures, self.said, self._limit = Wires(), list[tuple[int, str]](), list[str](), limit
        self._start_seconds = start_seconds
        self.notes = [Notes(self.wires, rank) for rank in range(len(HOSTS))]
        self.dogs = [self._dog(rank) for rank in range(len(HOSTS))]

    def _dog(self, rank: int) -> Watchdog:
        return Watchdog(
            self.notes[rank],
            [f"rank {number} on {host}" for number, host in enumerate(HOSTS)],
            self._limit,
            lambda text: self.failures.append((rank, text)),
            self.said.append,
            self._start_seconds,
        )

    def update(self, number: int, but: int | None = None) -> None:
        """All ranks finish an update, or wait for the one that does not bring its part."""
        for rank, dog in enumerate(self.dogs):
            if rank != but:
                dog.arrived()
        if but is None:
            for dog in self.dogs:
                dog.finished(number)

    def work(self, seconds: float) -> None:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            self.update(number := number + 1)
            time.sleep(0.02)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    for dog in scene.dogs:
        dog.close()


def test_quiet_work_is_left_alone(scene: Scene) -> None:
    scene.work(2 * LIMIT)
    assert (scene.failures, scene.said) == ([], [])


def test_a_silent_rank_is_named_by_rank_0(scene: Scene) -> None:
    scene.work(0.2)
    scene.wires.silent = {2}
    start = time.monotonic()
    waiting.until(lambda: bool(scene.failures), 5)
    assert LIMIT * 0.9 < time.monotonic() - start < 3 * LIMIT
    rank, text = scene.failures[0]
    assert rank == 0
    assert text.startswith("rank 2 on c is dead, stopped or cut off")


def test_a_silent_rank_0_is_named_by_rank_1_first() -> None:
    scene = Scene(5 * LIMIT)  # they speak a thirtieth of it apart
    scene.work(0.2)
    scene.wires.silent = {0}
    scene.dogs[0].close()  # it would find that nobody works any more
    waiting.until(lambda: len(scene.failures) == 2, 20)
    assert [rank for rank, _ in scene.failures] == [1, 2]
    assert all(text.startswith("rank 0 on a is dead") for _, text in scene.failures)


def test_a_rank_that_keeps_all_waiting_is_named(scene: Scene) -> None:
    scene.work(0.2)
    scene.update(99, but=1)
    waiting.until(lambda: bool(scene.failures), 5)
    assert len(scene.failures) == 1
    assert "rank 1 on b is stuck in update" in scene.failures[0][1]


def test_a_rank_that_nobody_waits_for_may_be_slow(scene: Scene) -> None:
    """Asynchronous training: ranks 1 and 2 update without rank 0."""
    scene.update(1)
    end, number = time.monotonic() + 3 * LIMIT, 1
    while time.monotonic() < end:
        for dog in scene.dogs[1:]:
            dog.arrived()
            dog.finished(number := number + 1)
        time.sleep(0.02)
    assert scene.failures == []


def test_who_does_not_come_to_a_meeting_is_named(scene: Scene) -> None:
    """Asynchronous training: the others have finished update 9 and wait where weights are compared."""
    scene.update(1)
    scene.dogs[1].finished(7)
    for rank in (0, 2):
        scene.dogs[rank].arrived()
        scene.dogs[rank].finished(9)
    waiting.until(lambda: bool(scene.failures), 5)
    assert scene.failures[0][1].startswith("rank 1 on b is stuck in update")


def test_an_update_may_take_ten_times_the_usual(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "PATIENCE", 1000.0)
    scene.work(0.2)
    scene.update(99, but=1)
    time.sleep(2 * LIMIT)
    assert scene.failures == []


@pytest.mark.parametrize("rank", [0, 1])
def test_an_evaluation_may_take_as_long_as_it_likes(scene: Scene, rank: int) -> None:
    scene.work(0.2)
    with scene.dogs[rank].busy("evaluating"):
        scene.update(99, but=rank)
        time.sleep(2 * LIMIT)
    assert scene.failures == []
    waiting.until(lambda: bool(scene.failures), 5)  # but not what comes after it
    assert f"rank {rank} on {HOSTS[rank]} is stuck in update" in scene.failures[0][1]


def test_a_rank_that_was_away_blames_nobody_for_that_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGSTOP stops its watchdog, too: it must listen for a whole limit after it has come back."""
    monkeypatch.setattr(watchdog, "WORTH_REPORTING", 0.2)
    scene.work(0.2)
    scene.wires.silent = {0}
    scene.notes[2].pause = 2 * LIMIT
    start = time.monotonic()
    waiting.until(lambda: 2 in [rank for rank, _ in scene.failures], 5)
    assert time.monotonic() - start > 2 * LIMIT + 0.9 * LIMIT


def test_a_job_that_was_away_as_a_whole_says_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "WORTH_REPORTING", 0.2)
    scene.work(0.2)
    for dog in scene.dogs:
        pause_once(dog, 2 * LIMIT)
    time.sleep(3 * LIMIT)
    scene.work(2 * LIMIT)
    assert (scene.failures, scene.said) == ([], [])


def pause_once(dog: Watchdog, seconds: float) -> None:
    """Let its thread sleep where it usually does, but longer."""
    usual = dog._closing.wait

    def wait(_period: float | None = None) -> bool:
        monkey.undo()
        time.sleep(seconds)
        return usual(0.0)

    monkey = pytest.MonkeyPatch()
    monkey.setattr(dog._closing, "wait", wait)


def test_a_pause_is_told_when_it_is_over(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "WORTH_REPORTING", 0.2)
    scene.work(0.2)
    scene.wires.silent = {1}
    scene.work(0.4)
    scene.wires.silent = set()
    waiting.until(lambda: bool(scene.said), 5)
    assert scene.said[0].startswith("rank 1 on b was silent for 0.")
    assert scene.failures == []


def test_a_start_that_takes_long_is_reported_and_one_that_hangs_is_ended() -> None:
    """Although the rank is alive: only its main thread hangs, in a disk, say."""
    scene = Scene(start_seconds=3 * LIMIT)
    for dog in scene.dogs:
        dog.set(10 * LIMIT)  # what comes after the start has a limit of its own
    for dog in scene.dogs[1:]:
        dog.arrived()
    waiting.until(lambda: bool(scene.failures), 10)
    for dog in scene.dogs:
        dog.close()
    assert scene.said == [f"rank 0 on a has been starting for {LIMIT:g} s so far"]
    assert scene.failures == [(0, f"rank 0 on a has been starting for {3 * LIMIT:g} s")]
