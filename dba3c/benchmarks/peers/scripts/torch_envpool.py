"""Train with torch for a while and write the pace. Run by its own python: torch_envpool.py a2c|ppo GAME SECONDS FILE

The layout of CleanRL's distributed PPO, made as fast on cores as we could: torch.compile, channels_last, a fused Adam,
EnvPool, one process per core, gradients averaged by gloo. The network, the segments and the losses are those of our
presets a2c and ppo.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import envpool
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

WARM_UP_UPDATES = 3  # the first compile
GAMMA, ENTROPY, VALUE, CLIP_NORM = 0.99, 0.01, 0.5, 0.5


class Recipe(NamedTuple):
    n_sim: int  # of each process
    n_steps: int
    hidden: int
    standardise: bool
    passes: int
    minibatches: int
    gae_lambda: float
    adam: dict


RECIPES = {
    "a2c": Recipe(32, 20, 128, False, 1, 1, 1.0, {"lr": 7e-4, "betas": (0.9, 0.99), "eps": 1e-5}),
    "ppo": Recipe(16, 128, 256, True, 3, 8, 0.95, {"lr": 5e-4, "betas": (0.9, 0.999), "eps": 1e-5}),
}


class Network(nn.Module):
    """16 8×8/4, 32 4×4/2, a hidden layer, logits and the value."""

    def __init__(self, actions, hidden, standardise):
        super().__init__()
        self.standardise = standardise
        self.conv1 = nn.Conv2d(4, 16, 8, 4)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.hidden = nn.Linear(2592, hidden)
        self.policy = nn.Linear(hidden, actions)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observations):
        x = observations.to(torch.float32) / 255
        if self.standardise:
            variance, mean = torch.var_mean(x, (1, 2, 3), correction=0, keepdim=True)
            x = (x - mean) * torch.rsqrt(variance + 1e-4)
        x = F.relu(self.conv2(F.relu(self.conv1(x.contiguous(memory_format=torch.channels_last)))))
        x = F.relu(self.hidden(x.flatten(1)))
        return F.log_softmax(self.policy(x), 1), self.value(x)[:, 0]


def make_functions(network, recipe):
    """Compile what is called again and again: acting, and the loss with its gradient."""

    def act(observations):
        log_policy, values = network(observations)
        actions = (log_policy.exp() / torch.empty_like(log_policy).exponential_()).argmax(1)
        return actions, log_policy.gather(1, actions[:, None])[:, 0], values

    def loss(observations, actions, returns, advantages, old):
        log_policy, values = network(observations)
        chosen = log_policy.gather(1, actions[:, None])[:, 0]
        if recipe.passes > 1:
            ratio = (chosen - old).exp()
            gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        else:
            gain = (chosen * advantages).mean()
        entropy = -(log_policy.exp() * log_policy).sum(1).mean()
        return VALUE * (returns - values).square().mean() - gain - ENTROPY * entropy

    return torch.compile(act, dynamic=False), torch.compile(loss, dynamic=False)


class Trainer:
    def __init__(self, recipe, game, rank):
        self.recipe = recipe
        title = "".join(word.capitalize() for word in game.split("_"))
        self.env = envpool.make(
            f"{title}-v5",
            env_type="gymnasium",
            num_envs=recipe.n_sim,
            num_threads=1,
            seed=1000 * rank,
            episodic_life=True,
            reward_clip=True,
        )
        torch.manual_seed(0)
        network = Network(int(self.env.action_space.n), recipe.hidden, recipe.standardise)
        self.network = network.to(memory_format=torch.channels_last)
        torch.manual_seed(1 + rank)
        self.act, self.loss = make_functions(self.network, recipe)
        self.optimizer = torch.optim.Adam(self.network.parameters(), fused=True, **recipe.adam)
        shape = recipe.n_steps, recipe.n_sim
        self.observations = torch.empty((*shape, 4, 84, 84), dtype=torch.uint8)
        self.actions = torch.empty(shape, dtype=torch.int64)
        self.old, self.values, self.rewards, self.going_on = (torch.empty(shape) for _ in range(4))
        self.newest = self.env.reset()[0]

    def play(self):
        """Fill a segment; return the values after it."""
        with torch.no_grad():
            for t in range(self.recipe.n_steps):
                self.observations[t] = torch.from_numpy(self.newest)
                self.actions[t], self.old[t], self.values[t] = self.act(self.observations[t])
                self.newest, rewards, terminated, truncated, _ = self.env.step(self.actions[t].numpy())
                self.rewards[t] = torch.from_numpy(rewards)
                self.going_on[t] = torch.from_numpy(~(terminated | truncated))
            return self.act(torch.from_numpy(self.newest))[2]

    def advantages(self, after):
        result, last = torch.empty_like(self.rewards), torch.zeros_like(after)
        for t in reversed(range(self.recipe.n_steps)):
            error = self.rewards[t] + GAMMA * self.going_on[t] * after - self.values[t]
            last = error + GAMMA * self.recipe.gae_lambda * self.going_on[t] * last
            result[t], after = last, self.values[t]
        return result

    def train(self):
        """Play and learn from one segment."""
        advantages = self.advantages(self.play())
        returns = advantages + self.values
        count = advantages.numel()
        columns = [x.flatten() for x in (self.actions, returns, advantages, self.old)]
        pictures = self.observations.flatten(0, 1)
        for _ in range(self.recipe.passes):
            if self.recipe.minibatches == 1:
                self.step(pictures, *columns)
                continue
            for part in torch.randperm(count).chunk(self.recipe.minibatches):
                actions, goals, gains, old = (x[part] for x in columns)
                self.step(pictures[part], actions, goals, (gains - gains.mean()) / (gains.std() + 1e-8), old)

    def step(self, *arrays):
        self.optimizer.zero_grad()
        self.loss(*arrays).backward()
        if dist.is_initialized():
            gradients = [weight.grad for weight in self.network.parameters()]
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
            for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients])):
                gradient.copy_(mean.view_as(gradient))
        nn.utils.clip_grad_norm_(self.network.parameters(), CLIP_NORM)
        self.optimizer.step()


def pace(trainer, seconds):
    """Measure the steps/s of all processes; the first says how many segments they play."""
    for _ in range(WARM_UP_UPDATES):
        trainer.train()
    start = time.perf_counter()
    trainer.train()
    segments = torch.tensor(max(2, int(seconds / (time.perf_counter() - start))))
    processes = 1
    if dist.is_initialized():
        dist.broadcast(segments, 0)
        dist.barrier()
        processes = dist.get_world_size()
    start = time.perf_counter()
    for _ in range(int(segments)):
        trainer.train()
    return processes * int(segments) * trainer.rewards.numel() / (time.perf_counter() - start)


def on_core(algorithm, game, seconds, file, rank, processes, meeting):
    """Take one process's part."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    if processes > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    found = pace(Trainer(RECIPES[algorithm], game, rank), seconds)
    if rank == 0:
        with open(file, "w", encoding="utf-8") as output:
            json.dump({"layout": f"{processes} processes", "steps_per_second": found}, output)
    if processes > 1:
        dist.destroy_process_group()


def main(algorithm, game, seconds, file):
    """Start a process per core."""
    processes = len(os.sched_getaffinity(0))
    settings = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        order = [sys.executable, __file__, algorithm, game, seconds, file]
        started = [
            subprocess.Popen([*order, str(rank), str(processes), f"{folder}/meeting"], env=os.environ | settings)
            for rank in range(processes)
        ]
        codes = [process.wait() for process in started]
    sys.exit(max(codes, key=abs))


if __name__ == "__main__":
    if len(sys.argv) == 5:
        main(*sys.argv[1:])
    else:
        ALGORITHM, GAME, SECONDS, FILE, RANK, PROCESSES, MEETING = sys.argv[1:]
        on_core(ALGORITHM, GAME, float(SECONDS), FILE, int(RANK), int(PROCESSES), MEETING)
