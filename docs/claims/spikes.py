"""Catch with rewards 100 times as large, one of 200, while the agent learns, never in an evaluation: for r3.yaml."""

import numpy as np

import dba3c
from dba3c.envs.catch import CatchEnv


class SpikyCatch:
    frames_per_step = CatchEnv.frames_per_step
    resolve = CatchEnv.resolve
    fingerprint = CatchEnv.fingerprint

    def __init__(self, config, n_sim, threads, max_frames):
        self._catch = CatchEnv(config, n_sim, threads, max_frames)
        self._spikes = max_frames is None  # evaluations have a limit
        self.n_sim = n_sim
        self.observation_space = self._catch.observation_space
        self.action_space = self._catch.action_space

    def reset(self, seeds):
        self._random = np.random.default_rng(int(seeds[0]))
        return self._catch.reset(seeds)

    def step(self, actions):
        step = self._catch.step(actions)
        spiked = self._random.random(self.n_sim) < 1 / 200
        return step._replace(rewards=np.where(self._spikes & spiked, 100.0, 1.0) * step.rewards)

    def close(self):
        self._catch.close()


dba3c.register("env.profile", "spiky_catch", SpikyCatch)
