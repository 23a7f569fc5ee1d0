"""Simulators that throw or hang are replaced, and the segment they were in is discarded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest

from dba3c.actors.asynchronous import Async
from dba3c.actors.lockstep import Lockstep
from dba3c.envs import rebuilding
from dba3c.envs.rebuilding import RebuildingEnv, SimulatorError
from dba3c.timings import Timings
from dba3c.training.evaluation import evaluate
from dba3c.types import Array, Step
from tests.fakes.loopback import Loopback
from tests.fakes.scripted_env import ScriptedPolicy, TapeEnv, moments, seeds_shown
from tests.fakes.settings import settings
from tests.fakes.waiting import within
from tests.training.test_evaluation import SeededEnv, score_of

N_SIM = 2
FIRST_SEEDS = np.array([7, 8])


class Sick(TapeEnv):
    """Fails in its n-th step, in its own way."""

    def __init__(self, fail_at: int | None, fail: Callable[[], object], first: int = 0) -> None:
        super().__init__(N_SIM, first)
        self._fail_at, self._fail = fail_at, fail

    def step(self, actions: Array) -> Step:
        if self.steps == self._fail_at:
            self._fail()
        return super().step(actions)


def burn() -> None:
    raise RuntimeError("on fire")


def hang() -> None:
    threading.Event().wait()


def rebuilding_env(
    *lives: int | None, fail: Callable[[], object] = burn, most: int = 3, seconds: float = 1.0
) -> tuple[RebuildingEnv, list[str]]:
    """Simulators of which each generation lives so many steps; and the reasons why they were replaced."""
    generations, reasons = iter(lives), list[str]()

    def make() -> Sick:
        return Sick(next(generations), fail)

    return RebuildingEnv(make, lambda count: FIRST_SEEDS + 100 * count, seconds, most, reasons.append), reasons


def actions_for(observations: Array) -> Array:
    return ScriptedPolicy().greedy(observations, np.zeros((len(observations), 0)))[0]


@pytest.mark.parametrize(("fail", "reason"), [(burn, "RuntimeError: on fire"), (hang, "TimeoutError: no answer")])
def test_new_simulators_play_new_episodes(
    fail: Callable[[], object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "WAIT_SECONDS", 0.3)
    env, reasons = rebuilding_env(2, None, fail=fail, seconds=0.3)
    observations = env.reset(FIRST_SEEDS)
    for _ in range(2):
        step = env.step(actions_for(observations))
        assert not step.rebuilt
        observations = step.observations
    last = observations
    step = within(10, lambda: env.step(actions_for(last)))
    assert step.rebuilt
    assert not step.rewards.any()
    assert not step.ended.any()
    assert step.terminal.all()
    assert [str(at) for at in moments(step.observations)] == ["0:0:0", "1:0:0"]
    np.testing.assert_array_equal(seeds_shown(step.observations), FIRST_SEEDS + 100)
    assert len(reasons) == 1
    assert reasons[0].startswith(reason)
    assert not env.step(actions_for(step.observations)).rebuilt


def test_too_often_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    env, reasons = rebuilding_env(0, 0, 0, 0, most=3)
    actions = actions_for(env.reset(FIRST_SEEDS))
    for _ in range(3):
        assert env.step(actions).rebuilt
    with pytest.raises(SimulatorError, match="4 times within a minute; the last: RuntimeError: on fire"):
        env.step(actions)
    assert len(reasons) == 3
    env, reasons = rebuilding_env(0, 0, 0, 0, None, most=3)
    monkeypatch.setattr(rebuilding, "MINUTE", 0.0)  # as if they had failed once in a while
    env.reset(FIRST_SEEDS)
    assert all(env.step(actions).rebuilt for _ in range(4))
    assert not env.step(actions).rebuilt


def test_a_reset_that_fails_is_repeated_with_the_same_seeds() -> None:
    class Stubborn(TapeEnv):
        built = 0

        def reset(self, seeds: Array) -> Array:
            Stubborn.built += 1
            if Stubborn.built == 1:
                burn()
            return super().reset(seeds)

    env = RebuildingEnv(lambda: Stubborn(N_SIM), lambda count: FIRST_SEEDS + 100 * count, 1.0, 3)
    np.testing.assert_array_equal(seeds_shown(env.reset(FIRST_SEEDS)), FIRST_SEEDS)


def test_closed_simulators_are_closed() -> None:
    made: list[TapeEnv] = []

    def make() -> TapeEnv:
        made.append(TapeEnv(N_SIM))
        return made[-1]

    RebuildingEnv(make, lambda _: FIRST_SEEDS, 1.0, 3).close()
    assert made[0].closed


@pytest.mark.parametrize("kind", ["lockstep", "async"])
def test_the_interrupted_segment_is_discarded(kind: str) -> None:
    """They fail in the second step of their second segment: four pictures are seen, then another game."""
    config = settings(f"env.n_sim={N_SIM}", "actor.n_steps=3", f"actor.group_size={N_SIM}", "train.batch_size=auto")
    env, _ = rebuilding_env(4, None)
    actor: Lockstep | Async
    if kind == "lockstep":
        actor = Lockstep(config, env, ScriptedPolicy(), 0, Timings())
    else:
        actor = Async(config, [env], ScriptedPolicy(), 0, Timings())
    actor.restart(0)
    batches = [deepcopy(batch) for batch in islice(actor, 4) if batch is not None]
    actor.close()
    played = [batch.observations[:-1].reshape(3, N_SIM, -1) for batch in batches]
    shown = [moments(states[:, 0]) for states in played]
    assert [[at.step for at in segment] for segment in shown[:2]] == [[0, 1, 2], [0, 1, 2]]
    assert [at.game for at in shown[1]] == [0, 0, 0]
    scores = [episode.steps for batch in batches for episode in batch.episodes]
    assert 7 in scores  # the first whole game of simulator 0; with what it had played before it would be
    assert 4 + 7 not in scores


def test_an_evaluation_plays_the_dropped_episodes_again() -> None:
    lives = iter((1, None, None))

    class SickSeeded(SeededEnv):
        def __init__(self, n_sim: int) -> None:
            super().__init__(n_sim, [])
            self._life = next(lives)

        def step(self, actions: Array) -> Step:
            if self._steps == self._life:
                burn()
            return super().step(actions)

    config = settings("evaluate.games=4", "evaluate.probe_games=0", "train.target_score=none")

    def make(n_sim: int) -> RebuildingEnv:
        return RebuildingEnv(lambda: SickSeeded(n_sim), lambda _: np.arange(n_sim), 1.0, 3)

    seeds: list[int] = []
    expected = evaluate(config, ScriptedPolicy(), lambda n: SeededEnv(n, seeds), Loopback()).scores
    assert evaluate(config, ScriptedPolicy(), make, Loopback()).scores == expected
    assert expected == [score_of(seed) for seed in seeds]


def test_simulators_that_cannot_be_closed_are_left_alone() -> None:
    class Clinging(TapeEnv):
        def close(self) -> None:
            burn()

    RebuildingEnv(lambda: Clinging(N_SIM), lambda _: FIRST_SEEDS, 1.0, 3).close()
