"""The asynchronous actor: nothing lost, nothing twice, nothing too old, nothing left hanging."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from dba3c.actors.asynchronous import lag_bound
from dba3c.config.schema import Config
from dba3c.learning.returns import n_step_returns
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.types import Array, Batch, Prediction
from tests.actors.async_scene import PATIENCE, Delay, Scene, playing, settings
from tests.fakes import scripted_env
from tests.fakes.scripted_env import CountingPolicy, Moment, ScriptedPolicy, ends, moments, raw_reward, scripted, value
from tests.fakes.waiting import within

GAMMA = 0.99


def random_speed(seed: int) -> Delay:
    """Most steps take no time, some much longer than others."""
    draw = random.Random(seed)
    return lambda _: time.sleep(draw.choice((0, 0, 0, 0.0005, 0.002)))


def by_simulator(batches: list[Batch]) -> dict[int, list[tuple[Moment, float]]]:
    """What was learned of each simulator, in the order of learning: moments and their returns."""
    learned = defaultdict(list)
    for batch in batches:
        targets = n_step_returns(batch.rewards, batch.discounts, batch.values[-1])
        for at, target in zip(moments(batch.observations[0]), targets.ravel().tolist(), strict=True):
            learned[at.simulator].append((at, target))
    return learned


def slow_return(simulator: int, k: int, n_steps: int) -> float:
    """Target of a simulator's k-th step: rewards to the end of its segment or episode, then the value seen there."""
    play = scripted(simulator, (k // n_steps + 1) * n_steps + 1)
    total, discount = 0.0, 1.0
    for at in play[k:-1]:
        total += discount * max(-1.0, min(1.0, raw_reward(at)))
        if ends(at) or scripted_env.loses_life(at):
            return total
        discount *= GAMMA
    return total + discount * value(play[-1])


def check_learned(config: Config, batches: list[Batch]) -> None:
    for batch in batches:
        assert batch.observations.shape[:2] == (2, config.batch_size)
        assert batch.steps == config.batch_size
        for row in (0, 1):
            np.testing.assert_array_equal(batch.values[row], [value(at) for at in moments(batch.observations[row])])
    for simulator, steps in by_simulator(batches).items():
        assert [at for at, _ in steps] == scripted(simulator, len(steps))
        slow = [slow_return(simulator, k, config.actor.n_steps) for k in range(len(steps))]
        np.testing.assert_allclose([target for _, target in steps], slow, rtol=1e-5, atol=1e-6)


@hypothesis.settings(max_examples=25, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    groups=st.integers(1, 3), group_size=st.integers(1, 2), n_steps=st.integers(1, 5), batch_size=st.integers(1, 13),
    queue_batches=st.integers(1, 2), predictors=st.integers(1, 3), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_layout_learns_every_step_once_in_order_with_its_return(
    groups: int, group_size: int, n_steps: int, batch_size: int, queue_batches: int, predictors: int, seed: int
) -> None:
    sizes = groups * group_size, group_size, n_steps, batch_size
    config = settings(*sizes, f"actor.predictors={predictors}", queue_batches=queue_batches)
    with playing(config, random_speed(seed)) as scene:
        check_learned(config, scene.learn(20))


@pytest.mark.parametrize(("group_size", "batch_size"), [(1, 7), (2, 7), (2, 20), (4, 33)])
def test_no_step_is_lost_or_learned_twice_over_many_batches(group_size: int, batch_size: int) -> None:
    config = settings(4, group_size, 5, batch_size)
    with playing(config, random_speed(group_size)) as scene:
        batches = scene.learn(1200 // batch_size)
        check_learned(config, batches)
        assert len(by_simulator(batches)) == 4


def test_nothing_leaks_over_the_end_of_an_episode() -> None:
    """The last step's return is its own clipped reward, whatever the next episode brings."""
    with playing(settings(3, 1, 5, 8)) as scene:
        learned = [pair for steps in by_simulator(scene.learn(40)).values() for pair in steps]
    last_steps = [(at, target) for at, target in learned if ends(at) or scripted_env.loses_life(at)]
    assert len(last_steps) > 50
    assert all(target == np.clip(raw_reward(at), -1, 1) for at, target in last_steps)


def test_every_finished_episode_is_reported_once_with_its_raw_score() -> None:
    config = settings(3, 1, 4, 10)
    with playing(config, random_speed(0)) as scene:
        batches = scene.learn(30)
    reported = Counter((episode.score, episode.steps) for batch in batches for episode in batch.episodes)
    certain: Counter[tuple[float, int]] = Counter()
    possible: Counter[tuple[float, int]] = Counter()
    for simulator, steps in by_simulator(batches).items():
        certain += finished_episodes(simulator, len(steps))
        possible += finished_episodes(
            simulator, len(steps) + config.batch_size
        )  # an episode is reported with its segment
    assert certain <= reported <= possible


def finished_episodes(simulator: int, steps: int) -> Counter[tuple[float, int]]:
    last_steps = [at for at in scripted(simulator, steps) if ends(at)]
    scores = [sum(raw_reward(Moment(*at[:2], step)) for step in range(at.step + 1)) for at in last_steps]
    return Counter((score, at.step + 1) for score, at in zip(scores, last_steps, strict=True))


def test_noise_and_seeds_are_those_of_the_lockstep_actor() -> None:
    with playing(settings(2, 1, 3, 5), random_speed(1)) as scene:
        within(PATIENCE, lambda: scene.actor.restart(4))
        batches = scene.learn(20)
    seen: Counter[int] = Counter()
    for batch in batches:
        for at, noise in zip(moments(batch.observations[0]), batch.log_probabilities.ravel(), strict=True):
            assert noise == action_noise(0, 4, np.array([at.simulator]), seen[at.simulator])[0, 0]
            seen[at.simulator] += 1
        simulators = np.array([at.simulator for at in moments(batch.observations[0])])
        np.testing.assert_array_equal(
            scripted_env.seeds_shown(batch.observations[0]), game_seeds(0, GAMES, 4, simulators)
        )


@pytest.mark.parametrize("predictors", [1, 3])
@pytest.mark.parametrize("slow", ["simulator", "learner", "both"])
def test_lag_is_bounded(slow: str, predictors: int) -> None:
    # Small batches: many updates pass while the slow simulator plays one segment.
    config = settings(4, 1, 3, 4, f"actor.predictors={predictors}")

    def delay(group: int) -> None:
        ahead = scene.envs[group].steps - min(env.steps for env in scene.envs)
        assert ahead < config.actor.n_steps, "this step puts a simulator too far ahead of the slowest"
        time.sleep(0.02 if group == 2 and slow != "learner" else 0)

    scene = Scene(config, delay)
    scene.actor.restart(0)
    try:
        steps: Counter[int] = Counter()
        while min(steps[simulator] for simulator in range(4)) < 20:
            steps.update(at.simulator for at in moments(scene.learn_one().observations[0]))
            time.sleep(0.005 if slow != "simulator" else 0)
    finally:
        within(PATIENCE, scene.actor.close)
    lags = np.concatenate(scene.lags)
    assert lags.min() >= 0
    assert 1 <= lags.max() <= lag_bound(config)


def test_agents_that_rest_and_come_back_lose_no_step_and_no_bound() -> None:
    config = settings(6, 1, 3, 4, "actor.agents=2", "actor.predictors=2")
    with playing(config, random_speed(2)) as scene:
        batches = scene.learn(20)
        assert set(by_simulator(batches)) == {0, 1}
        for agents in (6, 1, 4, 3, 6):
            scene.actor.crew["agents"] = agents
            batches += scene.learn(30)
        last = scene.learn(20)
    check_learned(config, batches + last)
    assert set(by_simulator(last)) == set(range(6))
    assert np.concatenate(scene.lags).max() <= lag_bound(config)


@pytest.mark.parametrize("memory", [0, 1])
def test_agents_rest_between_two_segments(memory: int) -> None:
    config = settings(4, 1, 3, 6, f"model.memory={memory}")
    with playing(config, policy=CountingPolicy() if memory else None) as scene:
        scene.learn(5)
        scene.actor.crew["agents"] = 1
        scene.learn(10)
        before = [env.steps for env in scene.envs]
        scene.learn(10)
        moved = [env.steps > steps for env, steps in zip(scene.envs, before, strict=True)]
        assert sum(moved) == 1
        assert all(steps % 3 == 0 for steps, more in zip(before, moved, strict=True) if not more)
        scene.actor.crew["agents"] = 4
        scene.learn(10)
        assert all(env.steps > steps for env, steps in zip(scene.envs, before, strict=True))


@pytest.mark.parametrize(("group_size", "segments"), [(1, 1), (2, 3), (4, 4)])
def test_what_remembers_gets_whole_segments_and_forgets_where_episodes_end(group_size: int, segments: int) -> None:
    config = settings(4, group_size, 5, 5 * segments, "model.memory=1")
    with playing(config, random_speed(group_size), CountingPolicy()) as scene:
        batches = scene.learn(120 // segments)
    played: dict[int, list[Moment]] = defaultdict(list)
    for batch in batches:
        assert batch.observations.shape[:2] == (6, segments)
        assert batch.memory[:, 0].tolist() == [at.step for at in moments(batch.observations[0])]
        np.testing.assert_array_equal(batch.ended.ravel(), [ends(at) for at in moments(batch.observations[:-1])])
        for segment in range(segments):
            shown = moments(batch.observations[:-1, segment])
            played[shown[0].simulator] += shown
    assert sum(map(len, played.values())) == 600
    assert all(shown == scripted(simulator, len(shown)) for simulator, shown in played.items())


class BusyPolicy(ScriptedPolicy):
    """An update lands between the reading of the version and that of the weights."""

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        before = self.version
        self.version += 1
        prediction = super().act(observations, noise, simulators, memory)
        self.acted_with |= dict.fromkeys(moments(observations), before)
        return prediction


def test_samples_never_claim_to_be_newer_than_they_are() -> None:
    policy = BusyPolicy()
    with playing(settings(2, 1, 3, 6), policy=policy) as scene:
        batches = [within(PATIENCE, lambda: next(scene.actor)) for _ in range(10)]
    for batch in batches:
        assert [policy.acted_with[at] for at in moments(batch.observations[0])] == batch.versions.ravel().tolist()
