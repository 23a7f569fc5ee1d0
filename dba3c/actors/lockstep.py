"""The lockstep player: n_sim games, one batched prediction per step, an endless iterator of Batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dba3c.actors.episodes import Games
from dba3c.actors.segment import Rollout
from dba3c.config.schema import Config
from dba3c.seeds import GAMES, action_noise, game_seeds
from dba3c.types import Batch, Episode, Policy, Prediction, Timings, VectorEnv


class Lockstep:
    """PAAC: all simulators step together, then the rank learns; every action comes from the newest weights."""

    def __init__(self, config: Config, env: VectorEnv, policy: Policy, first_simulator: int, timings: Timings) -> None:
        self._env, self._policy, self._timings = env, policy, timings
        self._seed = config.train.seed
        self._simulators = first_simulator + np.arange(env.n_sim)  # numbers in the whole job
        self._rollout = Rollout(config, env)

    def restart(self, update: int) -> None:
        self._start, self._step = update, 0
        self._rollout.clear()
        self._games, self._episodes = Games(self._env.n_sim), list[Episode]()
        self._observations = self._env.reset(game_seeds(self._seed, GAMES, update, self._simulators))

    def __iter__(self) -> Iterator[Batch | None]:
        return self

    def __next__(self) -> Batch | None:
        version = self._policy.version
        while not self._rollout.full:
            if self._policy.version != version:  # an update passed us by: play on, with its weights, in a new segment
                self._rollout.clear()
                return None
            prediction = self._predict()
            self._rollout.predicted(self._observations, prediction, self._policy.version)
            with self._timings.measure("env"):
                step = self._env.step(prediction.actions)
            self._rollout.stepped(step)
            self._episodes += self._games.count(step)
            self._observations = step.observations
            self._step += 1
        episodes, self._episodes = self._episodes, []
        return self._rollout.finish(self._predict().values, episodes)

    def _predict(self) -> Prediction:
        noise = action_noise(self._seed, self._start, self._simulators, self._step)
        with self._timings.measure("predict"):
            return self._policy.act(self._observations, noise)

    def close(self) -> None:
        self._env.close()
