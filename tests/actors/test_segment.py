"""Segments of play: cut and join, single transitions, buffers that are used again."""

from __future__ import annotations

import hypothesis
import numpy as np
from hypothesis import strategies as st

from dba3c.actors.segment import (
    BY_TIME,
    RunningEpisodes,
    Segment,
    as_transitions,
    cut,
    final_values,
    join,
    remembered,
)
from dba3c.learning.returns import n_step_returns
from dba3c.types import NOTHING, Array, Batch, Episode, Prediction, Step
from tests.fakes.scripted_env import TapeEnv
from tests.fakes.settings import settings

sizes = st.integers(1, 5)
few_examples = hypothesis.settings(max_examples=30, deadline=None, derandomize=True, database=None)


def some_batch(steps: int, segments: int, seed: int = 0) -> Batch:
    """Every number is different from the others of its array; about a third of the steps are terminal."""
    draw, shape, states = np.random.default_rng(seed), (steps, segments), (steps + 1, segments)

    def floats(*size: int) -> np.ndarray:
        return draw.normal(size=size).astype(np.float32)

    return Batch(
        observations=draw.permutation((steps + 1) * segments * 8).astype(np.uint8).reshape(*states, 1, 2, 4),
        actions=draw.permutation((steps + 1) * segments).astype(np.int32).reshape(states),
        log_probabilities=floats(*shape),
        rewards=floats(*shape),
        discounts=np.where(draw.random(shape) < 1 / 3, 0, 0.9).astype(np.float32),
        past_returns=floats(*shape),
        ended=draw.random(shape) < 1 / 4,
        values=floats(*states),
        versions=draw.permutation(steps * segments).reshape(shape),
        memory=floats(segments, 3),
        steps=steps * segments,
        episodes=[Episode(float(score), 3) for score in draw.normal(size=2)],
    )


def assert_equal(first: Batch, second: Batch) -> None:
    for name, one, other in zip(Batch._fields, first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name, strict=name not in ("episodes", "steps"))


@few_examples
@hypothesis.given(steps=sizes, segments=sizes, data=st.data())
def test_cut_then_join_changes_nothing(steps: int, segments: int, data: st.DataObject) -> None:
    batch = some_batch(steps, segments)
    first, rest = cut(batch, data.draw(st.integers(0, segments)))
    assert first.samples + rest.samples == batch.samples
    assert_equal(join([first, rest]), batch)


@few_examples
@hypothesis.given(widths=st.lists(sizes, min_size=1, max_size=4), steps=sizes)
def test_join_then_cut_changes_nothing(widths: list[int], steps: int) -> None:
    batches = [some_batch(steps, width, seed) for seed, width in enumerate(widths)]
    rest = join(batches)
    assert rest.episodes == [episode for batch in batches for episode in batch.episodes]
    for batch, width in zip(batches, widths, strict=True):
        part, rest = cut(rest, width)
        assert_equal(part._replace(episodes=[]), batch._replace(episodes=[]))
    assert rest.samples == 0


def test_cut_reports_no_episode_twice() -> None:
    batch = some_batch(2, 4)
    first, rest = cut(batch, 1)
    assert (first.episodes, rest.episodes) == (batch.episodes, [])


@few_examples
@hypothesis.given(steps=sizes, segments=sizes)
def test_transitions_are_the_steps_with_their_returns(steps: int, segments: int) -> None:
    segment = some_batch(steps, segments)
    flat = as_transitions(segment)
    assert flat.rewards.shape == (1, steps * segments)
    assert flat.observations.shape[:2] == flat.actions.shape == flat.values.shape == (2, steps * segments)
    for t in range(steps):
        for b in range(segments):
            i = t * segments + b
            for name in ("log_probabilities", "versions", "ended"):
                assert getattr(flat, name)[0, i] == getattr(segment, name)[t, b], name
            for name in ("observations", "actions", "values"):
                np.testing.assert_array_equal(getattr(flat, name)[0, i], getattr(segment, name)[t, b], err_msg=name)
                np.testing.assert_array_equal(getattr(flat, name)[1, i], getattr(segment, name)[-1, b], err_msg=name)
    expected = n_step_returns(segment.rewards, segment.discounts, segment.values[-1])
    learned = n_step_returns(flat.rewards, flat.discounts, flat.values[-1])
    np.testing.assert_allclose(learned.reshape(steps, segments), expected, rtol=1e-5, atol=1e-6)
    assert (flat.episodes, flat.steps) == (segment.episodes, segment.steps)


def prediction(mark: float = 0.0, memory: float = 0.0) -> Prediction:
    """Two simulators, whose every number is `mark`."""
    ones = np.ones(2, np.float32)
    return Prediction(ones * mark, ones * mark, ones * mark, np.full((2, 1), memory, np.float32))


def pictures(mark: int) -> Array:
    return np.full((2, 1, 2, 4), mark)


def filled(segment: Segment, mark: int) -> Batch:
    """A full segment whose every number is `mark`."""
    ones = np.ones(2)
    while not segment.full:
        segment.predicted(pictures(mark), prediction(mark), mark, np.full((2, 1), mark))
        segment.stepped(Step(pictures(0), ones * mark, ones > 1, ones > 1), NOTHING)
    return segment.finish(pictures(mark), prediction(mark), [])


def test_transitions_do_not_change_when_the_buffers_are_used_again() -> None:
    segment = Segment(settings("actor.n_steps=3", "env.reward_clip=100"), TapeEnv(2), memory_size=1)
    batch = filled(segment, 1)
    flat = as_transitions(batch)
    kept = as_transitions(batch)
    for name in BY_TIME:
        assert not np.shares_memory(getattr(flat, name), getattr(batch, name)), name
    filled(segment, 2)
    assert_equal(flat, kept)


def test_rewards_are_clipped_to_the_configured_size() -> None:
    for clip in (1.0, 0.25, 10.0):
        segment = Segment(settings("actor.n_steps=1", f"env.reward_clip={clip}"), TapeEnv(2), memory_size=1)
        segment.predicted(pictures(0), prediction(), 0, np.zeros((2, 1)))
        segment.stepped(Step(pictures(0), np.array([5.0, -3.0]), np.zeros(2, bool), np.zeros(2, bool)), NOTHING)
        assert segment.finish(pictures(0), prediction(), []).rewards.tolist() == [[min(5.0, clip), max(-3.0, -clip)]]


def test_the_state_after_the_segment_is_its_last_row() -> None:
    segment = Segment(settings("actor.n_steps=2"), TapeEnv(2), memory_size=1)
    for mark in (1, 2):
        segment.predicted(pictures(mark), prediction(mark), 0, np.full((2, 1), mark))
        segment.stepped(Step(pictures(0), np.zeros(2), np.array([mark == 1, False]), np.zeros(2, bool)), NOTHING)
    batch = segment.finish(pictures(3), prediction(3), [])
    assert batch.observations[:, 0, 0, 0, 0].tolist() == batch.actions[:, 0].tolist() == [1, 2, 3]
    assert batch.values[:, 1].tolist() == [1.0, 2.0, 3.0]
    assert batch.ended.tolist() == [[True, False], [False, False]]
    assert batch.memory.tolist() == [[1.0], [1.0]]  # what was remembered when the segment began
    assert batch.steps == batch.samples == 4


def test_a_truncated_episode_is_bootstrapped_from_its_final_observation() -> None:
    """Of two episodes that end, the first was cut off by a time limit: its return goes on, the other's does not."""
    config = settings("actor.n_steps=1", "env.reward_clip=100", "algorithm.gamma=0.5")
    segment = Segment(config, TapeEnv(2), memory_size=1)
    segment.predicted(pictures(1), prediction(), 0, np.zeros((2, 1)))
    ended, terminal = np.array([True, True]), np.array([False, True])
    step = Step(pictures(2), np.array([3.0, 3.0]), ended, terminal, final_observations=pictures(9)[:1])
    values = final_values(ValuesFromPictures(), step, np.array([4, 5]), np.array([[0.25], [0.5]]))
    assert values.tolist() == [9.25]  # of the final observation, with what was remembered of that episode
    segment.stepped(step, values)
    batch = segment.finish(pictures(2), prediction(mark=100), [])
    assert n_step_returns(batch.rewards, batch.discounts, batch.values[-1]).tolist() == [[3.0 + 0.5 * 9.25, 3.0]]


class ValuesFromPictures:
    """A policy whose value is the first pixel and what it remembers."""

    version, memory_size, noise_size = 0, 1, 1

    def act(self, observations: Array, _noise: Array, simulators: Array, memory: Array) -> Prediction:
        assert simulators.tolist() == [4]
        values = observations[:, 0, 0, 0] + memory[:, 0]
        return Prediction(np.zeros(len(values), np.int32), np.zeros(len(values), np.float32), values, memory)

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        raise NotImplementedError


def test_memory_of_episodes_that_are_over_is_forgotten() -> None:
    memory = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    step = Step(pictures(0), np.zeros(2), np.array([True, False]), np.array([True, True]))
    assert remembered(memory, step).tolist() == [[0.0, 0.0], [3.0, 4.0]]  # a lost life is terminal, but forgets nothing
    assert not remembered(memory, step._replace(rebuilt=True)).any()


def test_episodes_add_up_raw_rewards_until_they_end() -> None:
    running = RunningEpisodes(2)
    nothing = np.zeros(0)
    steps = [((5.0, 1.0), (0, 0)), ((7.0, -3.0), (1, 0)), ((2.0, 0.5), (1, 1))]
    reported = [running.count(Step(nothing, np.array(r), np.array(e, bool), np.array(e, bool))) for r, e in steps]
    assert reported == [[], [Episode(12.0, 2)], [Episode(2.0, 1), Episode(-1.5, 3)]]


def vector_segment(*overrides: str) -> Segment:
    return Segment(settings("env.n_sim=1", "env.reward_clip=0", *overrides), TapeEnv(1), 0)


def play_rewards(segment: Segment, rewards: list[float], ends: list[int], scale: float = 1.0) -> Batch:
    """Play until the segment is full; the steps with these numbers are the last of truncated episodes."""
    pictures = TapeEnv(1).reset(np.array([0]))
    prediction = Prediction(np.zeros(1, np.int32), np.zeros(1, np.float32), np.full(1, 7, np.float32), np.zeros((1, 0)))
    for number, reward in enumerate(rewards):
        segment.predicted(pictures, prediction, 0, prediction.memory)
        ended = np.array([number in ends])
        bootstraps = np.full(int(ended.sum()), 5, np.float32)
        segment.stepped(Step(pictures, np.array([reward]), ended, ended & False, pictures[ended]), bootstraps, scale)
    assert segment.full
    return segment.finish(pictures, prediction, [])


def test_rewards_are_not_clipped_where_that_is_switched_off() -> None:
    batch = play_rewards(vector_segment("actor.n_steps=3"), [250.0, -0.25, 3.0], [])
    assert batch.rewards[:, 0].tolist() == [250.0, -0.25, 3.0]


def test_rewards_are_scaled_before_the_bootstrap_is_added() -> None:
    batch = play_rewards(vector_segment("actor.n_steps=2", "algorithm.gamma=0.5"), [4.0, 8.0], [1], scale=0.25)
    assert batch.rewards[:, 0].tolist() == [1.0, 2.0 + 0.5 * 5]


def test_past_returns_are_discounted_sums_of_raw_rewards_and_end_with_the_episode() -> None:
    segment = vector_segment("actor.n_steps=2", "algorithm.gamma=0.5")
    first = play_rewards(segment, [4.0, 8.0], [], scale=0.25).past_returns[:, 0].tolist()
    assert first == [4.0, 10.0]
    assert play_rewards(segment, [2.0, 1.0], [0]).past_returns[:, 0].tolist() == [7.0, 1.0]


def test_a_whole_episode_is_one_segment_without_a_bootstrap() -> None:
    segment = vector_segment("actor.n_steps=2", "actor.kind=episodes", "train.batch_size=auto")
    for length in (7, 1, 3):
        batch = play_rewards(segment, [2.0] * length, [length - 1])
        assert batch.rewards[:, 0].tolist() == [2.0] * length
        assert batch.discounts[-1, 0] == 0
        assert (batch.discounts[:-1] > 0).all()
        assert (len(batch.observations), len(batch.values), batch.steps) == (length + 1, length + 1, length)
