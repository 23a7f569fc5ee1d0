"""The lockstep actor: one batched prediction per step of all simulators, an endless iterator of Batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dba3c.actors import MakeSimulators
from dba3c.actors.segment import RunningEpisodes, Segment, final_values, remembered, side_by_side
from dba3c.actors.sharded import Sharded
from dba3c.config.schema import Config
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.timings import Timings
from dba3c.types import Actor, Batch, Episode, Policy, Prediction, VectorEnv


def make(
    config: Config, simulators: MakeSimulators, policy: Policy, first_simulator: int, threads: int, timings: Timings
) -> Actor:
    """Make the actor with all simulators of a rank in one vector env, or with one for each shard."""
    shards = config.actor.shards
    if shards == 1:
        return Lockstep(
            config, simulators(first_simulator, config.env.n_sim, threads), policy, first_simulator, timings
        )
    size = config.env.n_sim // shards
    starts = [first_simulator + number * size for number in range(shards)]
    timings_of_shards = [timings.twin() for _ in starts]
    actors = [
        Lockstep(config, simulators(start, size, 1), policy, start, spent)
        for start, spent in zip(starts, timings_of_shards, strict=True)
    ]
    return Sharded(actors, side_by_side([actor.segment for actor in actors]), timings, timings_of_shards)


class Lockstep:
    """PAAC: all simulators step together, then the rank learns; every action comes from the newest weights."""

    def __init__(self, config: Config, env: VectorEnv, policy: Policy, first_simulator: int, timings: Timings) -> None:
        self._env = env
        self._policy = policy
        self._timings = timings
        self._seed = config.train.seed
        self._carry = config.actor.carry
        self._simulators = first_simulator + np.arange(env.n_sim)  # numbers in the whole job
        self.segment = Segment(config, env, policy.memory_size)

    def restart(self, update: int) -> None:
        self._start = update
        self._step = 0
        self.segment.clear()
        self._running = RunningEpisodes(self._env.n_sim)
        self._episodes: list[Episode] = []
        self._carried: tuple[Prediction, int] | None = None
        self._memory = np.zeros((self._env.n_sim, self._policy.memory_size), np.float32)
        self._observations = self._env.reset(game_seeds(self._seed, GAMES, update, self._simulators))

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        version = self._policy.version
        while not self.segment.full:
            if self._policy.version != version:  # an update went ahead without us: use its weights in a new segment
                self.segment.clear()
                return None
            self._play_one_step()
        episodes, self._episodes = self._episodes, []
        version = self._policy.version
        closing = self._predict()
        self._carried = (closing, version) if self._carry else None
        return self.segment.finish(self._observations, closing, episodes)

    def _play_one_step(self) -> None:
        """Step with new predictions or, with actor.carry, those that have closed the segment before."""
        prediction, version = self._carried or (self._predict(), self._policy.version)
        self._carried = None
        self.segment.predicted(self._observations, prediction, version, self._memory)
        with self._timings.measure("env"):
            step = self._env.step(prediction.actions)
        bootstraps = final_values(self._policy, step, self._simulators, prediction.memory)
        self.segment.stepped(step, bootstraps, self._policy.reward_scale)
        self._episodes += self._running.count(step)
        self._memory = remembered(prediction.memory, step)
        self._observations = step.observations
        self._step += 1

    def _predict(self) -> Prediction:
        noise = action_noise(self._seed, self._start, self._simulators, self._step, self._policy.noise_size)
        with self._timings.measure("predict"):
            return self._policy.act(self._observations, noise, self._simulators, self._memory)

    def close(self) -> None:
        self._env.close()
