"""Config → parts. What train, evaluate and bench share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dba3c import envs
from dba3c.actors.asynchronous import Async
from dba3c.actors.greedy import MakeEnv
from dba3c.actors.lockstep import Lockstep
from dba3c.comm import STRATEGIES, make_transport
from dba3c.comm.allreduce import Parts
from dba3c.config.schema import Config
from dba3c.envs.rebuilding import Guarded
from dba3c.learning.a3c import A3C
from dba3c.learning.agent import Agent
from dba3c.learning.optimizers import FlatOptimizer
from dba3c.learning.ppo import PPO
from dba3c.networks import build
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.seeds import REBUILT, game_seeds
from dba3c.training.injected import Faults, FaultyEnv
from dba3c.types import Array, Communicator, Optimizer, Player, Progress, Timings, Transport, VectorEnv

ALGORITHMS = {"a3c": A3C, "ppo": PPO}


def agent(config: Config) -> Agent:
    """The agent with its first weights."""
    env = envs.make(config.env, 1, threads=1)
    shape, n_actions = env.observation_shape, env.n_actions
    env.close()
    return agent_for(config, shape, n_actions)


def agent_for(config: Config, observation_shape: tuple[int, int, int], n_actions: int) -> Agent:
    network = build(config.model, observation_shape, n_actions, config.train.seed)
    tensor_clip = config.algorithm.clip_norm if config.algorithm.clip == "tensor" else None
    algorithm = ALGORITHMS[config.algorithm.name](config.algorithm)
    return Agent(network, algorithm, observation_shape, tensor_clip, config.train.seed)


def trained(saved: Checkpoint) -> Agent:
    """The agent of a checkpoint."""
    learned = agent(saved.config)
    learned.load(saved.weights, saved.progress["updates"])
    return learned


def optimizer(config: Config, learner: Agent) -> FlatOptimizer:
    global_clip = config.algorithm.clip_norm if config.algorithm.clip == "global" else None
    return FlatOptimizer(config.optimizer, learner.weights, global_clip)


def player(
    config: Config,
    policy: Agent,
    rank: int,
    threads: int,
    timings: Timings,
    faults: Faults | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Player:
    """This rank's games; simulators are numbered through the whole job."""
    first = rank * config.env.n_sim

    def simulators(start: int, count: int, cores: int) -> VectorEnv:
        numbers = start + np.arange(count)

        def make() -> VectorEnv:
            env = envs.make(config.env, count, cores)
            return FaultyEnv(env, faults, lambda: policy.version) if faults else env

        def rebuilt(reason: str) -> None:
            timings.rebuilt += 1
            say(f"simulators {start}-{start + count - 1} failed, {reason}; built anew, with new games")

        return guarded(config, make, lambda n: game_seeds(config.train.seed, REBUILT, n, numbers), rebuilt)

    if config.actor.kind == "lockstep":
        return Lockstep(config, simulators(first, config.env.n_sim, threads), policy, first, timings)
    size = config.actor.group_size
    groups = [simulators(start, size, 1) for start in range(first, first + config.env.n_sim, size)]
    return Async(config, groups, policy, first, timings)


def evaluation_env(config: Config, threads: int) -> MakeEnv:
    """Simulators for greedy games: only game over ends them, or the length limit."""
    settings = config.env.model_copy(update={"life_loss_terminal": False})

    def make(n_sim: int) -> VectorEnv:
        frames = config.evaluate.max_frames
        return guarded(config, lambda: envs.make(settings, n_sim, threads, frames), lambda _: np.arange(n_sim))

    return make


def guarded(
    config: Config,
    make: Callable[[], VectorEnv],
    seeds: Callable[[int], Array],
    rebuilt: Callable[[str], None] = lambda _: None,
) -> VectorEnv:
    return Guarded(make, seeds, config.env.step_seconds, config.env.rebuilds_per_minute, rebuilt)


def communicator(
    config: Config,
    among: Transport,
    learner: Agent,
    rule: Optimizer,
    timings: Timings,
    progress: Progress,
    everyone: Callable[[int], bool] = lambda _: False,
) -> Communicator:
    """Updates of `learner` from all ranks; none is left behind by the update after one for which `everyone` is true."""

    def applied(number: int) -> None:
        learner.version = number

    applied(progress.updates)  # gradients for other weights than the communicator's would be dropped
    total = config.train.total_steps
    parts = Parts(among, rule, timings, progress, total, applied, everyone)
    return STRATEGIES[config.comm.strategy](config.comm, parts)


def transport(config: Config, world_comm: object) -> Transport:
    return make_transport(config.comm.transport, world_comm)
