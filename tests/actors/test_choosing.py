"""Actions of an evaluation: functions of seed, episode and step."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c.actors.choosing import Choose, Seen, chooser
from dba3c.seeds import EVALUATION_ACTIONS, action_noise
from dba3c.types import Array, Prediction
from tests.fakes.scripted_env import TapeEnv
from tests.fakes.settings import settings

COUNT = 20_000


class Fickle:
    """Greedy actions are 2; sampled ones are made of the noise, which is kept with the simulators it came for."""

    memory_size = 1
    noise_size = 2
    version = 5

    def act(self, observations: Array, noise: Array, simulators: Array, memory: Array) -> Prediction:
        self.noise, self.simulators = noise, simulators
        nothing = np.zeros(len(observations), np.float32)
        return Prediction((3 * noise[:, 0]).astype(np.int32), nothing, nothing, memory + 2)

    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]:
        return np.full(len(observations), 2, np.int32), memory + 1


def choice(policy: str, *overrides: str) -> tuple[Fickle, Choose]:
    agent = Fickle()
    return agent, chooser(settings(f"evaluate.policy={policy}", "train.seed=9", *overrides), agent, TapeEnv(1))


def seen(episodes: Array, steps: Array) -> Seen:
    return Seen(np.zeros((len(episodes), 1, 2, 4)), np.zeros((len(episodes), 1), np.float32), episodes, steps)


def test_greedy_actions_are_the_policys() -> None:
    actions, memory = choice("greedy")[1](seen(np.arange(3), np.zeros(3)))
    assert (actions.tolist(), memory[:, 0].tolist()) == ([2, 2, 2], [1, 1, 1])


def test_sampled_actions_have_noise_of_seed_update_episode_and_step() -> None:
    agent, choose = choice("sampled")
    episodes, steps = np.array([0, 1, 7]), np.array([4, 4, 90])
    actions, memory = choose(seen(episodes, steps))
    expected = action_noise(9, 5, episodes, steps, 2, purpose=EVALUATION_ACTIONS)
    np.testing.assert_array_equal(agent.noise, expected)
    np.testing.assert_array_equal(agent.simulators, episodes)
    np.testing.assert_array_equal(actions, (3 * expected[:, 0]).astype(int))
    assert memory[:, 0].tolist() == [2, 2, 2]
    alone = [choose(seen(episodes[n : n + 1], steps[n : n + 1]))[0][0] for n in range(3)]
    assert alone == actions.tolist()
    assert (expected != action_noise(9, 5, episodes, steps, 2)).all()  # which training draws


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4, 1.0])
def test_with_probability_epsilon_any_action_is_taken(epsilon: float) -> None:
    """Each of the three with a third of epsilon; the greedy one takes the rest, too."""
    _, choose = choice("epsilon", f"evaluate.epsilon={epsilon}")
    actions, memory = choose(seen(np.arange(COUNT) % 50, np.arange(COUNT) // 50))
    shares = np.bincount(actions, minlength=3) / COUNT
    np.testing.assert_allclose(shares, epsilon / 3 + np.array([0, 0, 1 - epsilon]), atol=0.01)
    assert actions.dtype == np.int32
    assert (memory == 1).all()


def test_random_actions_depend_neither_on_whether_they_are_taken_nor_on_the_neighbours() -> None:
    some = seen(np.arange(200), np.full(200, 3))
    always, often = (choice("epsilon", f"evaluate.epsilon={epsilon}")[1](some)[0] for epsilon in (1.0, 0.5))
    taken = often != 2
    assert 30 < taken.sum() < 120
    np.testing.assert_array_equal(often[taken], always[taken])
    one = choice("epsilon", "evaluate.epsilon=1.0")[1](seen(np.array([17]), np.array([3])))[0]
    assert one[0] == always[17]
