"""What comes out of a replay memory is what was played, whatever was written over meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dba3c.actors.experience import Everyones, Experience, Own, Ring, bytes_per_step
from dba3c.actors.lockstep import Lockstep
from dba3c.timings import Timings
from dba3c.types import BY_TIME, Array, Batch, Prediction, Spaces, Step, Transport
from tests.fakes.loopback import Loopback
from tests.fakes.scripted_env import ScriptedPolicy
from tests.fakes.settings import settings
from tests.fakes.thread_ranks import ThreadRank, on_ranks

SHAPE = (2, 3)
GAMMA = np.float32(0.99)


class Stacks:
    """Simulators whose observations are stacks of random frames, with zeros before an episode's first; it notes all."""

    action_space = Discrete(3, dtype=np.int32)

    def __init__(self, n_sim: int, history: int, end: float, seed: int) -> None:
        self.n_sim = n_sim
        self.observation_space = Box(0, 255, (history, *SHAPE), np.uint8)
        self._end = end
        self._random = np.random.default_rng(seed)
        self.played: list[tuple[Array, Array, Step]] = []  # observations, actions, answer

    def reset(self, _seeds: Array) -> Array:
        self._now = np.zeros((self.n_sim, *self.observation_space.shape), np.uint8)
        self._push(np.ones(self.n_sim, bool))
        return self._now.copy()

    def _push(self, new: Array) -> None:
        self._now[new] = 0
        self._now[:, :-1] = self._now[:, 1:]
        self._now[:, -1] = self._random.integers(1, 256, size=(self.n_sim, *SHAPE))

    def step(self, actions: Array) -> Step:
        before, ended = self._now.copy(), self._random.random(self.n_sim) < self._end
        lost_life = self._random.random(self.n_sim) < self._end
        rewards = self._random.choice([-1.0, 0.0, 1.0], size=self.n_sim)
        self._push(ended)
        step = Step(self._now.copy(), rewards, ended, ended | lost_life)
        self.played.append((before, actions.copy(), step))
        return step

    def close(self) -> None: ...


class RandomPolicy(ScriptedPolicy):
    def __init__(self) -> None:
        super().__init__()
        self._random = np.random.default_rng(7)

    def act(self, observations: Array, noise: Array, _simulators: Array, memory: Array) -> Prediction:
        count = len(observations)
        actions = self._random.integers(3, size=count).astype(np.int32)
        return Prediction(actions, noise[:, 0], np.zeros(count, np.float32), memory)


def spaces(history: int) -> Spaces:
    return Spaces(Box(0, 255, (history, *SHAPE), np.uint8), Stacks.action_space)


def segments(env: Stacks, count: int, n_steps: int) -> list[Batch]:
    """Segments of play, as an actor writes them, with random actions."""
    config = settings(f"env.n_sim={env.n_sim}", f"actor.n_steps={n_steps}")
    actor = Lockstep(config, env, RandomPolicy(), 0, Timings())
    actor.restart(0)
    batches = []
    for _ in range(count):
        batch = next(actor)
        assert batch is not None
        batches.append(Batch(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in batch)))
    return batches


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    n_sim=st.integers(1, 3),
    history=st.integers(1, 4),
    n_steps=st.integers(1, 4),
    count=st.integers(3, 25),
    rows=st.integers(9, 40),
    length=st.integers(1, 3),
    end=st.sampled_from([0.0, 0.1, 0.5]),
    seed=st.integers(0, 1000),
)
def test_a_stored_transition_is_what_the_simulators_gave(
    n_sim: int, history: int, n_steps: int, count: int, rows: int, length: int, end: float, seed: int
) -> None:
    """Also across ends of episodes, and where the ring was written over: every row that it offers is compared."""
    env = Stacks(n_sim, history, end, seed)
    ring = Ring(rows, n_sim, spaces(history), history)
    for batch in segments(env, count, n_steps):
        ring.write(batch)
    starts = ring.starts(length)
    played = count * n_steps
    assert list(starts) == list(range(max(0, played - rows + history - 1), played - length))
    for simulator in range(n_sim):
        found = ring.transitions(np.array(starts, np.int64), np.full(len(starts), simulator), length)
        for number, row in enumerate(starts):
            expected = by_hand(env, row, simulator, length)
            np.testing.assert_array_equal(found.observations[0, number], expected[0])
            assert found.actions[0, number] == expected[1]
            assert found.rewards[0, number] == pytest.approx(expected[2], rel=1e-6)
            assert found.discounts[0, number] == pytest.approx(expected[3], rel=1e-6)
            if expected[3]:
                np.testing.assert_array_equal(found.observations[1, number], expected[4])


def by_hand(env: Stacks, row: int, simulator: int, length: int) -> tuple[Array, int, float, float, Array]:
    """Observation, action, discounted rewards, discount and observation after so many steps, from the notes."""
    reward, discount = 0.0, 1.0
    for _, _, step in env.played[row : row + length]:
        reward += discount * step.rewards[simulator]
        discount *= 0.0 if step.terminal[simulator] else float(GAMMA)
    before, actions, _ = env.played[row]
    return before[simulator], actions[simulator], reward, discount, env.played[row + length][0][simulator]


def test_simulators_that_were_rebuilt_leave_no_transition_between_old_and_new_episodes() -> None:
    first, second = Stacks(2, 4, 0.0, 1), Stacks(2, 4, 0.0, 2)
    ring = Ring(40, 2, spaces(4), 4)
    for batch in segments(first, 2, 4) + segments(second, 2, 4):
        ring.write(batch)
    both = np.array([7, 8]), np.array([0, 0])
    found = ring.transitions(*both, 1)
    assert found.discounts[0].tolist() == [0.0, pytest.approx(0.99)]
    np.testing.assert_array_equal(found.observations[0, 1], second.played[0][0][0])  # nothing of the old ones shows


def experience(*options: str, worker: int = 0) -> tuple[Experience, RandomPolicy, Stacks]:
    config = settings(
        "env.n_sim=2", "actor.n_steps=2", "algorithm.name=q", "algorithm.returns=one_step", "train.batch_size=5",
        "experience.capacity_steps=80", "experience.warm_up_steps=16", "experience.steps_per_update=1", *options,
    )  # fmt: skip
    policy, env = RandomPolicy(), Stacks(2, 4, 0.1, 3)
    actor = Lockstep(config, env, policy, 0, Timings())
    ring = Ring(40, 2, spaces(4), 4)
    made = Experience(config, actor, policy, ring, Own(ring, 1, config.train.seed, worker), Timings())
    made.restart(0)
    return made, policy, env


def take(actor: Experience, policy: RandomPolicy) -> Batch:
    batch = next(actor)
    assert batch is not None
    policy.version += 1
    return batch


def test_it_plays_until_it_is_warm_and_then_makes_so_many_updates_per_step() -> None:
    actor, policy, _ = experience()
    batches = [take(actor, policy) for _ in range(11)]
    assert [batch.samples for batch in batches] == [0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5]
    assert [batch.steps for batch in batches] == [4, 4, 4, 4, 0, 0, 0, 4, 0, 0, 0]
    assert sum(len(batch.episodes) for batch in batches[4:7] + batches[8:]) == 0
    actor.restart(20)
    assert [take(actor, policy).samples for _ in range(4)] == [0, 0, 0, 5]  # it was emptied


def test_fewer_updates_than_steps() -> None:
    actor, policy, _ = experience("experience.steps_per_update=4")
    assert [take(actor, policy).steps for _ in range(6)] == [4] * 6


def test_what_is_drawn_is_a_function_of_seed_update_and_rank() -> None:
    def drawn(*options: str, worker: int = 0, skip: int = 0) -> Array:
        actor, policy, _ = experience(*options, worker=worker)
        for _ in range(6):
            take(actor, policy)
        policy.version += skip
        return take(actor, policy).observations

    np.testing.assert_array_equal(drawn(), drawn())
    for other in (drawn("train.seed=1"), drawn(worker=1), drawn(skip=1)):
        assert not np.array_equal(drawn(), other)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_from_the_memories_of_all_ranks_the_same_is_drawn_in_every_layout(ranks: int) -> None:
    """Each of `ranks` ranks keeps some of six simulators and learns from its share of one large batch."""
    env = Stacks(6, 4, 0.2, 5)
    batches = segments(env, 6, 3)

    def drawn(transport: Transport) -> Batch:
        """What one of the ranks gets, of 24 samples in all."""
        own = 6 // transport.size
        ring = Ring(12, own, spaces(4), 4)
        for batch in batches:
            ring.write(of_simulators(batch, slice(transport.rank * own, (transport.rank + 1) * own)))
        return Everyones(ring, 2, 0, transport).sample(24 // transport.size, 7)

    alone = drawn(Loopback())
    parts = on_ranks(ranks, drawn)
    for name in ("observations", "actions", "rewards", "discounts", "versions"):
        together = np.concatenate([getattr(part, name) for part in parts], axis=1)
        np.testing.assert_array_equal(together, getattr(alone, name))
    assert {part.samples for part in parts} == {24 // ranks}
    assert all(part.steps == 0 and part.episodes == [] for part in parts)


def of_simulators(batch: Batch, some: slice) -> Batch:
    by_time = {name: getattr(batch, name)[:, some] for name in BY_TIME}
    return batch._replace(**by_time, memory=batch.memory[some], episodes=[])


def test_all_memories_are_drawn_from() -> None:
    """Only the first of two ranks has seen rewards; both learn from them."""

    def rewards(transport: ThreadRank) -> float:
        ring = Ring(30, 2, spaces(4), 4)
        for batch in segments(Stacks(2, 4, 0.0, transport.rank), 5, 4):
            ring.write(batch._replace(rewards=np.full_like(batch.rewards, 1 - transport.rank)))
        return float(Everyones(ring, 1, 0, transport).sample(400, 1).rewards.mean())

    assert on_ranks(2, rewards) == [pytest.approx(0.5, abs=0.1)] * 2


def test_a_million_frames_take_seven_gigabytes() -> None:
    """Measured on a smaller ring, and what the check of the host's memory counts on."""
    atari = Spaces(Box(0, 255, (4, 84, 84), np.uint8), Discrete(6, dtype=np.int32))
    ring = Ring(500, 2, atari, 4)
    arrays = [value for value in vars(ring).values() if isinstance(value, np.ndarray) and len(value) == 500]
    measured = sum(array.nbytes for array in arrays)
    assert measured == 1000 * bytes_per_step(atari, 4)
    assert 7.0e9 < measured * 1000 <= 7.5e9
