"""The asynchronous actor's threads: a full queue holds them back, restart and close end them, errors come out."""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial

import numpy as np
import pytest

from dba3c.seeds import GAMES, game_seeds
from dba3c.types import Array, Prediction
from tests.actors.async_scene import PATIENCE, Delay, Scene, playing, settings
from tests.fakes import scripted_env
from tests.fakes.scripted_env import ScriptedPolicy, moments, scripted
from tests.fakes.waiting import within


def new_threads(before: list[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread not in before and thread.name != "within"]


@pytest.mark.parametrize(("group_size", "queue_batches"), [(1, 1), (2, 1), (1, 3)])
def test_a_full_queue_holds_the_simulators_back(group_size: int, queue_batches: int) -> None:
    config = settings(4, group_size, 3, 7, queue_batches=queue_batches)
    # The queue, a batch less one in the pool, the segment that filled it, and all simulators' open segments.
    most = (queue_batches + 1) * 7 - 1 + 3 * group_size + 3 * 4
    with playing(config) as scene:
        assert queue_batches * 7 < scene.settle() <= most
        scene.learn(3)
        assert (queue_batches + 3) * 7 < scene.settle() <= most + 3 * 7


class BrokenPolicy(ScriptedPolicy):
    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        if len(self.tape) == 25:
            raise ValueError("the policy broke")
        return super().act(observations, noise, simulators, memory)


def breaking_after(calls: int) -> Delay:
    counter = itertools.count()

    def step(group: int) -> None:
        if next(counter) >= calls and group == 1:
            raise OSError("the simulator broke")

    return step


def test_an_error_in_a_simulator_reaches_the_learner() -> None:
    before = threading.enumerate()
    with playing(settings(4, 2, 3, 5), breaking_after(20)) as scene, pytest.raises(OSError, match="simulator broke"):
        scene.learn(100)
    assert not new_threads(before)


def test_an_error_in_the_policy_reaches_the_learner() -> None:
    before = threading.enumerate()
    with playing(settings(4, 2, 3, 5), policy=BrokenPolicy()) as scene, pytest.raises(ValueError, match="policy broke"):
        scene.learn(100)
    assert not new_threads(before)


def test_an_error_behind_a_full_queue_does_not_keep_the_actor_from_closing() -> None:
    before = threading.enumerate()
    with playing(settings(4, 1, 3, 2), policy=BrokenPolicy()) as scene:
        scene.settle()
    assert not new_threads(before)


@pytest.mark.parametrize("batches", [0, 1, 10])
def test_close_ends_all_threads_and_closes_the_simulators(batches: int) -> None:
    before = threading.enumerate()
    with playing(settings(4, 1, 3, 5), lambda _: time.sleep(0.001)) as scene:
        scene.learn(batches)
        if batches != 1:
            scene.settle()  # the queue is full and the actor waits before it
        assert new_threads(before)
    assert not new_threads(before)
    assert all(env.closed for env in scene.envs)


def test_predicting_threads_come_and_go_as_the_crew_says() -> None:
    before = threading.enumerate()
    with playing(settings(6, 1, 3, 5, "actor.predictors=3"), lambda _: time.sleep(0.001)) as scene:
        for count in (3, 1, 4, 2):
            scene.actor.crew["predictors"] = count
            scene.learn(40)
            assert sum(thread.name.startswith("predictor") for thread in threading.enumerate()) == count
    assert not new_threads(before)


class MeetingPolicy(ScriptedPolicy):
    """Predicts at the second moment only while another thread predicts, too: one alone would wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting = threading.Barrier(2, timeout=PATIENCE)

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        if [at.step for at in moments(observations)] == [1]:
            self._meeting.wait()
        return super().act(observations, noise, simulators, memory)


def test_two_threads_predict_at_the_same_time() -> None:
    slow_second = partial(time.sleep, 0.1)  # so that the two come one after the other
    with playing(
        settings(2, 1, 3, 2, "actor.predictors=2"), lambda group: slow_second() if group else None, MeetingPolicy()
    ) as scene:
        scene.learn(2)


@pytest.mark.parametrize("predictors", [2, 4])
def test_an_error_in_one_of_several_predicting_threads_reaches_the_learner(predictors: int) -> None:
    before = threading.enumerate()
    config = settings(4, 1, 3, 5, f"actor.predictors={predictors}")
    with playing(config, policy=BrokenPolicy()) as scene, pytest.raises(ValueError, match="policy broke"):
        scene.learn(100)
    assert not new_threads(before)


def test_close_without_start() -> None:
    before = threading.enumerate()
    within(PATIENCE, Scene(settings(2, 1, 3, 5)).actor.close)
    assert not new_threads(before)


@pytest.mark.parametrize("queue_is_full", [False, True])
def test_restart_plays_new_games_only_and_leaves_no_thread_behind(queue_is_full: bool) -> None:
    before = threading.enumerate()
    slow = 0.0 if queue_is_full else 0.02  # not full: some simulators are in the middle of a step
    with playing(settings(4, 2, 3, 5), lambda group: time.sleep(slow * group)) as scene:
        threads = len(new_threads(before))
        for update in (3, 8, 3):
            scene.learn(2)
            if queue_is_full:
                scene.settle()
            within(PATIENCE, partial(scene.actor.restart, update))
            assert len(new_threads(before)) == threads
            check_fresh(scene, update)
    assert not new_threads(before)


def check_fresh(scene: Scene, update: int) -> None:
    batches = scene.learn(6)
    observations = np.concatenate([batch.observations[0] for batch in batches])
    seen = moments(observations)
    seeds = game_seeds(0, GAMES, update, np.array([at.simulator for at in seen]))
    np.testing.assert_array_equal(scripted_env.seeds_shown(observations), seeds)
    for simulator in {at.simulator for at in seen}:
        own = [at for at in seen if at.simulator == simulator]
        assert own == scripted(simulator, len(own))
