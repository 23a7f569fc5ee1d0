"""How an evaluation chooses actions: greedily, as in training, or greedily but for a share of random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.config.schema import Config
from dba3c.seeds import EVALUATION_ACTIONS, action_noise
from dba3c.types import Array, Policy, VectorEnv


class Seen(NamedTuple):
    """What some episodes show, and how far each is: all that an action may depend on, besides the policy."""

    observations: Array  # [n, …]
    memory: Array  # [n, M]
    episodes: Array  # [n] their numbers in the whole evaluation, on whatever rank they are played
    steps: Array  # [n] since their start


Choose = Callable[[Seen], tuple[Array, Array]]  # → actions, memory


def chooser(config: Config, policy: Policy, env: VectorEnv) -> Choose:
    """Return the choice that evaluate.policy names; its noise is a function of seed, update, episode and step."""

    def noise(seen: Seen, count: int) -> Array:
        return action_noise(
            config.train.seed, policy.version, seen.episodes, seen.steps, count, purpose=EVALUATION_ACTIONS
        )

    def greedy(seen: Seen) -> tuple[Array, Array]:
        return policy.greedy(seen.observations, seen.memory)

    def sampled(seen: Seen) -> tuple[Array, Array]:
        made = policy.act(seen.observations, noise(seen, policy.noise_size), seen.episodes, seen.memory)
        return made.actions, made.memory

    def epsilon(seen: Seen) -> tuple[Array, Array]:
        """Take any action with probability epsilon, also the greedy one [DQN]."""
        chosen, memory = greedy(seen)
        whether, which = noise(seen, 2).T  # [n] each
        anything = (which * env.action_space.n).astype(chosen.dtype)  # type: ignore[union-attr]
        return np.where(whether < config.evaluate.epsilon, anything, chosen), memory

    return {"greedy": greedy, "sampled": sampled, "epsilon": epsilon}[config.evaluate.policy]
