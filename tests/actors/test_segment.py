"""Segments of play: cut and join, single transitions, buffers that are used again."""

from __future__ import annotations

import hypothesis
import numpy as np
from hypothesis import strategies as st

from dba3c.actors.episodes import Games
from dba3c.actors.segment import Rollout, as_transitions, cut, join
from dba3c.learning.returns import n_step_returns
from dba3c.types import Batch, Episode, Prediction, Step
from tests.fakes.scripted_env import TapeEnv
from tests.fakes.settings import settings

sizes = st.integers(1, 5)
few_examples = hypothesis.settings(max_examples=30, deadline=None, derandomize=True, database=None)


def some_batch(steps: int, segments: int, seed: int = 0) -> Batch:
    """Every number is different from the others of its array; about a third of the steps are terminal."""
    draw, shape = np.random.default_rng(seed), (steps, segments)

    def floats(*size: int) -> np.ndarray:
        return draw.normal(size=size).astype(np.float32)

    return Batch(
        observations=draw.permutation(steps * segments * 8).astype(np.uint8).reshape(*shape, 1, 2, 4),
        actions=draw.permutation(steps * segments).astype(np.int32).reshape(shape),
        log_probabilities=floats(*shape),
        rewards=floats(*shape),
        discounts=np.where(draw.random(shape) < 1 / 3, 0, 0.9).astype(np.float32),
        values=floats(steps + 1, segments),
        versions=draw.permutation(steps * segments).reshape(shape),
        episodes=[Episode(float(score), 3) for score in draw.normal(size=2)],
    )


def assert_equal(first: Batch, second: Batch) -> None:
    for name, one, other in zip(Batch._fields, first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name, strict=name != "episodes")


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


def test_cut_reports_no_game_twice() -> None:
    batch = some_batch(2, 4)
    first, rest = cut(batch, 1)
    assert (first.episodes, rest.episodes) == (batch.episodes, [])


@few_examples
@hypothesis.given(steps=sizes, segments=sizes)
def test_transitions_are_the_steps_with_their_returns(steps: int, segments: int) -> None:
    segment = some_batch(steps, segments)
    flat = as_transitions(segment)
    assert flat.actions.shape == (1, steps * segments)
    assert flat.values.shape == (2, steps * segments)
    for t in range(steps):
        for b in range(segments):
            i = t * segments + b
            np.testing.assert_array_equal(flat.observations[0, i], segment.observations[t, b])
            for name in ("actions", "log_probabilities", "versions"):
                assert getattr(flat, name)[0, i] == getattr(segment, name)[t, b], name
            assert flat.values[0, i] == segment.values[t, b]
    expected = n_step_returns(segment.rewards, segment.discounts, segment.values[-1])
    np.testing.assert_array_equal(flat.rewards.reshape(steps, segments), expected)
    learned = n_step_returns(flat.rewards, flat.discounts, flat.values[-1])
    np.testing.assert_array_equal(learned, flat.rewards)  # whoever computes returns again gets the same ones
    assert flat.episodes == segment.episodes


def filled_rollout(rollout: Rollout, mark: int) -> Batch:
    """A full segment whose every number is `mark`."""
    ones = np.ones(2)
    while not rollout.full:
        prediction = Prediction(ones * mark, ones * mark, ones * mark)
        rollout.predicted(np.full((2, 1, 2, 4), mark), prediction, mark)
        rollout.stepped(Step(np.zeros((2, 1, 2, 4)), ones * mark, ones > 1, ones > 1))
    return rollout.finish(ones * mark, [])


def test_transitions_do_not_change_when_the_buffers_are_used_again() -> None:
    rollout = Rollout(settings("actor.n_steps=3", "env.reward_clip=100"), TapeEnv(2))
    segment = filled_rollout(rollout, 1)
    flat = as_transitions(segment)
    kept = as_transitions(segment)
    assert not any(np.shares_memory(mine, theirs) for mine in flat[:-1] for theirs in segment[:-1])
    filled_rollout(rollout, 2)
    assert_equal(flat, kept)


def test_rewards_are_clipped_to_the_configured_size() -> None:
    for clip in (1.0, 0.25, 10.0):
        rollout = Rollout(settings("actor.n_steps=1", f"env.reward_clip={clip}"), TapeEnv(2))
        nothing = Prediction(np.zeros(2), np.zeros(2), np.zeros(2))
        rollout.predicted(np.zeros((2, 1, 2, 4)), nothing, 0)
        rollout.stepped(Step(np.zeros(0), np.array([5.0, -3.0]), np.zeros(2, bool), np.zeros(2, bool)))
        assert rollout.finish(np.zeros(2), []).rewards.tolist() == [[min(5.0, clip), max(-3.0, -clip)]]


def test_games_add_up_raw_rewards_until_they_end() -> None:
    games = Games(2)
    nothing = np.zeros(0)
    steps = [((5.0, 1.0), (0, 0)), ((7.0, -3.0), (1, 0)), ((2.0, 0.5), (1, 1))]
    reported = [games.count(Step(nothing, np.array(r), np.array(e, bool), np.array(e, bool))) for r, e in steps]
    assert reported == [[], [Episode(12.0, 2)], [Episode(2.0, 1), Episode(-1.5, 3)]]
