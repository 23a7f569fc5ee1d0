"""Train stable-baselines3's A2C for a while and write its pace. Run by its own python: sb3_a2c.py GAME SECONDS FILE"""

import json
import os
import sys
import time

import torch
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack
from torch import nn

WARM_UP_STEPS = 800
LAYOUTS = [(32, DummyVecEnv), (64, DummyVecEnv), (128, DummyVecEnv), (32, SubprocVecEnv), (64, SubprocVecEnv)]


class Nips128(BaseFeaturesExtractor):
    """The network of our preset `a2c`: 16 8×8/4, 32 4×4/2, 128 hidden."""

    def __init__(self, observation_space):
        super().__init__(observation_space, features_dim=128)
        self.layers = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2592, 128),
            nn.ReLU(),
        )

    def forward(self, observations):
        return self.layers(observations)


class Clock(BaseCallback):
    """Counts steps for some seconds after a warm-up, then ends the training."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.start = None
        self.first = 0

    def _on_step(self):
        if self.start is None and self.num_timesteps >= WARM_UP_STEPS:
            self.start, self.first = time.perf_counter(), self.num_timesteps
        return self.start is None or time.perf_counter() - self.start < self.seconds

    @property
    def pace(self):
        return (self.num_timesteps - self.first) / (time.perf_counter() - self.start)


def pace(game, seconds, n_envs, vec_env):
    name = "ale_py:" + "".join(word.capitalize() for word in game.split("_")) + "NoFrameskip-v4"
    env = VecFrameStack(make_atari_env(name, n_envs=n_envs, seed=0, vec_env_cls=vec_env), n_stack=4)
    policy = {"features_extractor_class": Nips128, "net_arch": []}
    model = A2C("CnnPolicy", env, n_steps=20, ent_coef=0.01, vf_coef=0.5, policy_kwargs=policy, device="cpu", seed=0)
    clock = Clock(seconds)
    model.learn(10**9, callback=clock)
    env.close()
    return clock.pace


def main(game, seconds, file):
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rows = [
        {"layout": f"{n_envs} simulators, {vec_env.__name__}", "steps_per_second": pace(game, seconds, n_envs, vec_env)}
        for n_envs, vec_env in LAYOUTS
    ]
    best = max(rows, key=lambda row: row["steps_per_second"])
    with open(file, "w", encoding="utf-8") as output:
        json.dump(best | {"rows": rows}, output)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
