"""Episodes of an evaluation: how many, which, on how many ranks, how they end, and when a target counts as reached."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dba3c import envs
from dba3c.actors import single_episodes
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.run_files.progress import Progress
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.training import build
from dba3c.training.evaluation import Evaluation, evaluate
from dba3c.types import Array, Prediction, Step, VectorEnv
from tests.fakes.batches import spaces
from tests.fakes.loopback import Loopback
from tests.fakes.scripted_env import CountingPolicy, Moment, ScriptedPolicy, TapeEnv, game_length
from tests.fakes.settings import settings
from tests.fakes.thread_ranks import ThreadRank, on_ranks


def score_of(seed: int) -> float:
    """The raw score of the seeded game, other than the sum of its rewards clipped to one."""
    return float(seed % 1000)


def length_of(seed: int) -> int:
    return 2 + seed % 7


class SeededEnv:
    """A game whose score and length come from its seed, won in its last step; the games after it pay a fortune."""

    observation_space, action_space = spaces(3, (1, 2, 4))

    def __init__(self, n_sim: int, log: list[int], score: Callable[[int], float] = score_of) -> None:
        self.n_sim, self._log, self._score = n_sim, log, score
        self.closed = False

    def reset(self, seeds: Array) -> Array:
        self._seeds, self._steps = seeds.tolist(), 0
        self._log += self._seeds
        return self._show()

    def step(self, actions: Array) -> Step:
        assert actions.shape == (self.n_sim,)
        self._steps += 1
        ended = np.array([self._steps % length_of(seed) == 0 for seed in self._seeds])
        first = np.array([self._steps <= length_of(seed) for seed in self._seeds])
        rewards = np.where(first, [self._score(seed) for seed in self._seeds], 1e6) * ended
        return Step(self._show(), rewards, ended, ended)

    def _show(self) -> Array:
        return np.full((self.n_sim, 1, 2, 4), self._steps % 256, np.uint8)

    def close(self) -> None:
        self.closed = True


class StandingEnv:
    """One game that shows a new picture every `still` steps only, and never ends."""

    n_sim = 1
    observation_space, action_space = spaces(3, (1, 2, 4))

    def __init__(self, still: int, give_up: int) -> None:
        self._still, self._give_up = still, give_up
        self.steps = 0

    def reset(self, seeds: Array) -> Array:
        assert seeds.shape == (1,)
        return self._show()

    def step(self, actions: Array) -> Step:
        assert actions.shape == (1,)
        self.steps += 1
        ended = np.array([self.steps == self._give_up])
        return Step(self._show(), np.array([2.0]), ended, ended)

    def _show(self) -> Array:
        return np.full((1, 1, 2, 4), self.steps // self._still, np.uint8)

    def close(self) -> None: ...


def evaluated_by(config: Config, size: int, version: int = 0) -> tuple[list[Evaluation], list[int]]:
    """What every rank gets to know, and the seeds that were played."""
    log: list[int] = []

    def run(transport: ThreadRank) -> Evaluation:
        policy = ScriptedPolicy()
        policy.version = version
        return evaluate(config, policy, lambda n_sim: SeededEnv(n_sim, log), transport)

    return on_ranks(size, run), log


def games(count: int, *overrides: str) -> Config:
    return settings(f"evaluate.games={count}", f"evaluate.probe_games={count}", "train.target_score=none", *overrides)


def seeds_of(count: int, version: int = 0, seed: int = 0) -> list[int]:
    numbers: list[int] = game_seeds(seed, EVALUATION, version, np.arange(count)).tolist()
    return numbers


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 13])
def test_each_game_is_played_once_with_the_same_score_on_any_number_of_ranks(size: int, count: int) -> None:
    results, played = evaluated_by(games(count), size)
    seeds = seeds_of(count)
    assert sorted(played) == sorted(seeds)
    assert all(result == Evaluation([score_of(seed) for seed in seeds], full=True) for result in results)


@pytest.mark.parametrize("policy", ["greedy", "sampled", "epsilon"])
def test_episodes_are_remembered_from_their_own_start_only(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups end at different moments, and simulators whose episode is over play on in the next one."""
    monkeypatch.setattr(single_episodes, "GROUP", 2)
    firsts = iter(range(0, 6, 2))
    config, numbers = settings(f"evaluate.policy={policy}", "evaluate.epsilon=0"), np.arange(6)
    made = single_episodes.play(
        config, CountingPolicy(), lambda n_sim: TapeEnv(n_sim, next(firsts)), numbers, lambda _: None
    )
    assert [len(episode.actions) for episode in made] == [game_length(Moment(number, 0, 0)) for number in range(6)]


class PaidEnv(SeededEnv):
    """Every step pays its action, in a sum from which the sequence can be read."""

    def step(self, actions: Array) -> Step:
        step = super().step(actions)
        return step._replace(rewards=actions * 3.0**self._steps)


class NoisyPolicy(ScriptedPolicy):
    """Samples one of three actions, whatever it sees; the greedy one is 1."""

    def act(self, observations: Array, noise: Array, _simulators: Array, memory: Array) -> Prediction:
        nothing = np.zeros(len(observations), np.float32)
        return Prediction((3 * noise[:, 0]).astype(np.int32), nothing, nothing, memory)

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        return np.ones(len(observations), np.int32), memory


@pytest.mark.parametrize("policy", ["sampled", "epsilon"])
def test_chance_is_the_same_on_any_number_of_ranks_and_other_for_each_episode(policy: str) -> None:
    def scores(size: int, *overrides: str) -> list[float]:
        config = games(13, f"evaluate.policy={policy}", "evaluate.epsilon=0.9", *overrides)
        results = on_ranks(size, lambda rank: evaluate(config, NoisyPolicy(), lambda n: PaidEnv(n, []), rank))
        assert all(result == results[0] for result in results)
        return results[0].scores

    alone = scores(1)
    assert len(set(alone)) > 9  # some games have two steps only
    assert scores(2) == scores(3) == alone
    assert scores(1, "train.seed=1") != alone


def test_simulators_that_are_rebuilt_play_the_same_episode_again() -> None:
    """Its steps are counted from its start, so that the same noise leads to the same score."""

    class FailingEnv(PaidEnv):
        failures = 1

        def step(self, actions: Array) -> Step:
            if self._steps == 1 and self.failures:
                self.failures -= 1
                nothing = np.zeros(self.n_sim)
                return Step(self._show(), nothing, nothing > 0, nothing == 0, rebuilt=True)
            return super().step(actions)

    config = games(4, "evaluate.policy=sampled")
    whole, rebuilt = (
        evaluate(config, NoisyPolicy(), lambda n, env=env: env(n, []), Loopback()) for env in (PaidEnv, FailingEnv)
    )
    assert rebuilt == whole


def test_random_actions_need_actions_that_can_be_counted() -> None:
    config = loading.load("ppo-control", ["env.game=Pendulum-v1", "evaluate.policy=epsilon"])
    with pytest.raises(ConfigError, match=r"evaluate\.policy=epsilon: the actions of this game are numbers"):
        build.agent(config)


def test_games_are_drawn_from_seed_and_update() -> None:
    cases = [(seed, version) for seed in (0, 1) for version in (0, 7)]
    played = [tuple(evaluated_by(games(5, f"train.seed={seed}"), 1, version)[1]) for seed, version in cases]
    assert played == [tuple(seeds_of(5, version, seed)) for seed, version in cases]
    assert len({seed for group in played for seed in group}) == 20


def test_the_mean_is_that_of_the_raw_scores() -> None:
    (result,), _ = evaluated_by(games(4), 1)
    assert result.mean == pytest.approx(np.mean([score_of(seed) for seed in seeds_of(4)]))


def test_all_simulators_are_closed() -> None:
    made: list[SeededEnv] = []

    def make_env(n_sim: int) -> SeededEnv:
        made.append(SeededEnv(n_sim, []))
        return made[-1]

    evaluate(games(9), ScriptedPolicy(), make_env, Loopback())
    assert sum(env.n_sim for env in made) == 9
    assert all(env.closed for env in made)


@pytest.mark.parametrize(
    ("policy", "still", "steps"), [("greedy", 100, 6), ("greedy", 5, 60), ("sampled", 100, 60), ("epsilon", 100, 60)]
)
def test_a_stuck_game_ends_with_its_score_and_one_that_may_change_goes_on(
    policy: str, still: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_episodes, "STUCK_STEPS", 6)
    env = StandingEnv(still, give_up=60)
    result = evaluate(games(1, f"evaluate.policy={policy}"), NoisyPolicy(), lambda _: env, Loopback())
    assert env.steps == steps
    assert result.scores == [2.0 * steps]
    assert result.cut == (steps == 6)


def probed(target: str, score: Callable[[int], float], probe: int = 3, count: int = 8) -> Evaluation:
    overrides = f"evaluate.games={count}", f"evaluate.probe_games={probe}", f"train.target_score={target}"
    return evaluate(settings(*overrides), ScriptedPolicy(), lambda n_sim: SeededEnv(n_sim, [], score), Loopback())


@pytest.mark.parametrize(
    ("target", "score", "played"),
    [("10", 9.9, 3), ("10", 10.0, 8), ("10", 11.0, 8), ("none", -5.0, 8), ("-4", -5.0, 3)],
)
def test_the_rest_is_played_if_the_probe_reaches_the_target(target: str, score: float, played: int) -> None:
    result = probed(target, lambda _: score)
    assert result.scores == [score] * played
    assert result.full == (played == 8)


def test_the_probe_games_are_the_first_of_all_games() -> None:
    whole, part = probed("none", score_of), probed("1e9", score_of)
    assert whole.scores == [score_of(seed) for seed in seeds_of(8)]
    assert part.scores == whole.scores[:3]


def test_only_all_games_together_reach_the_target() -> None:
    """The probe games alone win, the rest lose: the mean of all counts."""
    first = set(seeds_of(3))
    result = probed("10", lambda seed: 20.0 if seed in first else 0.0)
    assert (result.full, result.mean) == (True, 7.5)
    progress = Progress()
    progress.evaluated(result.mean, len(result.scores), result.full, 10.0)
    assert not progress.target_reached


@pytest.mark.parametrize(
    ("score", "full", "target", "reached"),
    [(10.0, True, 10.0, True), (99.0, False, 10.0, False), (9.9, True, 10.0, False), (99.0, True, None, False)],
)
def test_target_reached(score: float, full: bool, target: float | None, reached: bool) -> None:
    progress = Progress(target_reached=not reached, best_score=50.0)
    progress.evaluated(score, 50, full, target)
    assert progress.target_reached == reached
    assert (progress.evaluation_score, progress.best_score) == (score, max(score, 50.0))


def test_a_target_counts_when_evaluations_in_a_row_reach_it() -> None:
    """Three evaluations that reach it, one that misses, a probe that misses, and again; each with other weights."""
    progress, counted = Progress(), list[tuple[int, bool]]()
    for update, (score, full) in enumerate(
        [(11.0, True), (9.0, True), (12.0, True), (9.0, False), *[(10.0, True)] * 3]
    ):
        progress.updates = update
        progress.evaluated(score, 50 if full else 10, full, 10.0, in_a_row=2)
        counted.append((progress.reached_in_a_row, progress.target_reached))
    assert counted == [(1, False), (0, False), (1, False), (0, False), (1, False), (2, True), (3, True)]


def test_the_same_weights_do_not_count_twice() -> None:
    progress = Progress(updates=5)
    for _ in range(3):  # as by a job that was killed after its evaluation, and resumed
        progress.evaluated(11.0, 50, True, 10.0, in_a_row=2)
        assert (progress.reached_in_a_row, progress.target_reached) == (1, False)


@pytest.mark.parametrize(
    ("target", "in_a_row", "left", "reached"),
    [(10.0, 2, 2, True), (10.0, 3, 2, False), (12.0, 2, 0, False), (None, 2, 0, False), (10.0, 1, 2, True)],
)
def test_a_resumed_run_is_judged_by_its_new_target(
    target: float | None, in_a_row: int, left: int, reached: bool
) -> None:
    progress = Progress(evaluation_score=11.0, reached_in_a_row=2, target_reached=True)
    progress.judge(target, in_a_row)
    assert (progress.reached_in_a_row, progress.target_reached) == (left, reached)


@pytest.mark.parametrize("size", [1, 2])
def test_games_that_a_length_limit_ended_are_counted(size: int) -> None:
    class CutEnv(SeededEnv):
        """Every second seed's game is cut."""

        def step(self, actions: Array) -> Step:
            step = super().step(actions)
            return step._replace(cut=step.ended & (np.array(self._seeds) % 2 == 0))

    def run(transport: ThreadRank) -> Evaluation:
        return evaluate(games(13), ScriptedPolicy(), lambda n_sim: CutEnv(n_sim, []), transport)

    expected = sum(seed % 2 == 0 for seed in seeds_of(13))
    assert 0 < expected < 13
    assert [result.cut for result in on_ranks(size, run)] == [expected] * size


@pytest.mark.parametrize(("profile", "steps"), [("deepmind", 50), ("paper", 66)])
def test_evaluation_games_end_at_their_frame_limit_and_not_with_a_life(profile: str, steps: int) -> None:
    """200 frames, whatever env.max_frames says; a life is lost meanwhile, which would end a training episode."""
    config = settings(f"env.profile={profile}", "env.max_frames=40", "evaluate.max_frames=200", "env.n_sim=7")

    def terminal_steps(env: VectorEnv) -> list[int]:
        env.reset(np.array([1], np.int32))
        fire = np.array([1], np.int32)  # serves, and the paddle stays where it is
        found = [t for t in range(1, steps + 1) if env.step(fire).terminal[0]]
        env.close()
        return found

    assert terminal_steps(build.evaluation_env(config, threads=1)(1)) == [steps]
    assert len(terminal_steps(envs.make(config.env, 1, threads=1, max_frames=200))) > 1
