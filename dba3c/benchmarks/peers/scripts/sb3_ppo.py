"""Train stable-baselines3's PPO with the settings of its Zoo until a task is solved. Run by its own python:

sb3_ppo.py TASK TARGET FILE
"""

import json
import sys
import time

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

EVERY_STEPS = 10_240  # between two evaluations, as our preset has them
PROBE, EPISODES = 10, 50  # greedy episodes: all of them only if the first ones reach the target


def falling(value):
    return lambda left: left * value


# hyperparams/ppo.yml of github.com/DLR-RM/rl-baselines3-zoo, for the versions of these tasks that it has:
# number of simulators, steps, whether observations and rewards are normalised, and PPO's own settings
ZOO = {
    "CartPole-v1": (8, 100_000, False, {
        "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
        "learning_rate": falling(0.001), "clip_range": falling(0.2),
    }),
    "Acrobot-v1": (16, 1_000_000, True, {
        "n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0,
    }),
    "LunarLander-v3": (16, 1_000_000, False, {
        "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01,
    }),
    "InvertedPendulum-v5": (1, 1_000_000, True, {
        "n_steps": 32, "batch_size": 64, "gamma": 0.999, "learning_rate": 0.000222425, "ent_coef": 1.37976e-07,
        "clip_range": 0.4, "n_epochs": 5, "gae_lambda": 0.9, "max_grad_norm": 0.3, "vf_coef": 0.19816,
    }),
}  # fmt: skip


class UntilSolved(BaseCallback):
    """Plays greedy episodes now and then, and ends the training when their mean reaches the target."""

    def __init__(self, task, target):
        super().__init__()
        self.env = make_vec_env(task, n_envs=1).envs[0]
        self.target = target
        self.next = EVERY_STEPS
        self.scores = []
        self.solved = False

    def _on_step(self):
        return not self.solved

    def _on_rollout_end(self):
        if self.num_timesteps >= self.next:
            self.next = (self.num_timesteps // EVERY_STEPS + 1) * EVERY_STEPS
            self.solved = self.evaluate()

    def evaluate(self, probe=PROBE):
        self.scores = [self.episode(number) for number in range(probe)]
        if np.mean(self.scores) >= self.target:
            self.scores += [self.episode(number) for number in range(len(self.scores), EPISODES)]
        return len(self.scores) == EPISODES and np.mean(self.scores) >= self.target

    def episode(self, number):
        observation, _ = self.env.reset(seed=1_000_000 + number)
        normalised = isinstance(self.training_env, VecNormalize)
        score, over = 0.0, False
        while not over:
            seen = self.training_env.normalize_obs(observation) if normalised else observation
            action, _ = self.model.predict(seen, deterministic=True)
            observation, reward, terminated, truncated, _ = self.env.step(action)
            score += float(reward)
            over = terminated or truncated
        return score


def main(task, target, file):
    torch.set_num_threads(1)  # such small networks are slower with more
    start = time.perf_counter()
    n_envs, total, normalise, settings = ZOO[task]
    env = make_vec_env(task, n_envs=n_envs, seed=0)
    env = VecNormalize(env, gamma=settings["gamma"]) if normalise else env
    model = PPO("MlpPolicy", env, device="cpu", seed=0, **settings)
    watch = UntilSolved(task, target)
    model.learn(total, callback=watch)
    if not watch.solved:
        watch.evaluate(EPISODES)
    result = {
        "score": float(np.mean(watch.scores)),
        "episodes": len(watch.scores),
        "steps": int(model.num_timesteps),
        "seconds": time.perf_counter() - start,
    }
    with open(file, "w", encoding="utf-8") as output:
        json.dump(result, output)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
