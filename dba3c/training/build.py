"""Config → parts: what training, evaluation and the benchmarks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dba3c import envs, networks
from dba3c.actors import experience
from dba3c.actors.asynchronous import Async
from dba3c.actors.idle import Idle
from dba3c.actors.self_tuning import MOST_THREADS, SelfTuning
from dba3c.actors.single_episodes import MakeEnv
from dba3c.comm import server
from dba3c.comm.allreduce import Surroundings
from dba3c.config import names
from dba3c.config.comparison import SHAPING, shown
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Comm, Config
from dba3c.envs.rebuilding import RebuildingEnv
from dba3c.envs.starts import StartedEnv
from dba3c.learning import clipping
from dba3c.learning.agent import Agent
from dba3c.learning.clipping import GuardedLearner, Learner
from dba3c.learning.optimizers import FlatOptimizer
from dba3c.learning.shards import Shards, Trainers
from dba3c.networks.normalisation import normaliser_for
from dba3c.run_files import checkpoint
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.progress import Progress
from dba3c.seeds import REBUILT, game_seeds
from dba3c.timings import Timings
from dba3c.training.evaluation import read_starts
from dba3c.training.injected import Faults, FaultyEnv
from dba3c.types import Actor, Algorithm, Array, Clock, Optimizer, Say, Spaces, Strategy, Transport, VectorEnv

if TYPE_CHECKING:
    from dba3c.training.ranks import Ranks


def agent(config: Config, first: Checkpoint | None = None) -> Agent:
    """Make the agent with its first weights, those of another agent if one is given; ConfigError if they do not fit."""
    made = agent_for(config, envs.spaces(config.env))
    if first is not None:
        check_start(first, config, made.layout.total)
        made.load(first.weights, made.clock)
        made.normaliser.restore(first.statistics)
    return made


def check_start(first: Checkpoint, config: Config, parameters: int) -> None:
    """Raise ConfigError if the weights of an agent have no meaning for a network of this configuration."""
    there, here = first.config.flat(), config.flat()
    for name in SHAPING:
        if there[name] != here[name]:
            old, new = shown(there[name]), shown(here[name])
            raise ConfigError(
                f"--init: the agent has {name}={old}, this training {new}; add --{name}={old}, or start from another"
            )
    if len(first.weights) != parameters:
        games = f"{first.config.env.game} and {config.env.game}"
        raise ConfigError(
            f"--init: the agent has {len(first.weights):,} weights, this training needs {parameters:,}: {games} differ"
            " in their actions; start from an agent of a game with as many"
        )


def agent_for(config: Config, spaces: Spaces) -> Agent:
    if config.evaluate.policy == "epsilon" and not hasattr(spaces.action, "n"):
        raise ConfigError("evaluate.policy=epsilon: the actions of this game are numbers; use greedy or sampled")
    algorithm: Algorithm = names.find("algorithm.name", config.algorithm.name)(config.algorithm, spaces)
    normaliser = normaliser_for(config.env, spaces)
    network = networks.build(config.model, spaces, algorithm.heads, config.train.seed, normaliser)
    clip = clipping.of_each_rank(config.algorithm, network.layout)
    scale, seed, total_steps = config.algorithm.loss_scale, config.train.seed, config.train.total_steps
    return Agent(network, algorithm, clip, scale, seed, total_steps, Shards(config.actor.shards))


def trained(saved: Checkpoint) -> Agent:
    """Make the agent of a checkpoint; ConfigError if the checkpoint does not fit its own configuration."""
    learned = agent(saved.config)
    checkpoint.check_length(saved, learned.layout.total)
    clock = Clock(saved.progress["updates"], saved.progress["steps"], saved.config.train.total_steps)
    learned.load(saved.weights, clock)
    learned.normaliser.restore(saved.statistics)
    return learned


def trainers(config: Config, agent: Agent, actor: Callable[[], Actor]) -> Learner:
    """Return what computes gradients: the agent itself, or threads that do so side by side."""
    if config.actor.trainers == 1 and not config.actor.self_tuning:
        return agent
    return Trainers(agent, lambda: cast(SelfTuning | Async, actor()).crew, max(MOST_THREADS, config.actor.trainers))


def portable(agent: Agent, config: Config) -> Any:
    """Make a Keras model of the agent's network, for programs without dba3c."""
    from dba3c.networks.portable import portable

    heads, weights = agent.algorithm.heads, agent.weights.numpy()
    return portable(config.model, envs.spaces(config.env), heads, agent.layout, weights, agent.normaliser)


def guarded(learner: Learner, agent: Agent, ranks: Callable[[], Ranks]) -> Learner:
    """Let a learner drop outliers, if its algorithm wants that."""
    outliers = getattr(agent.algorithm, "outliers", None)
    if outliers is None:
        return learner
    return GuardedLearner(learner, outliers, lambda: ranks().world.rank, lambda text: ranks().say_here(text))


def optimizer(config: Config, learner: Agent) -> FlatOptimizer:
    return FlatOptimizer(config.optimizer, learner.weights, clipping.limit_of_the_mean(config.algorithm))


def owners(config: Comm, hosts: list[str]) -> tuple[int, ...]:
    """Name the ranks that own slices of the weights; none where every rank holds all of them."""
    return server.owners(hosts, config.servers) if config.strategy == "server" else ()


def worker(config: Comm, hosts: list[str], rank: int) -> int | None:
    """Number the ranks that play; None for a rank that only serves weights."""
    idle = owners(config, hosts) if config.dedicated else ()
    return None if rank in idle else rank - sum(other < rank for other in idle)


def actor(
    config: Config,
    policy: Agent,
    worker: int | None,
    threads: int,
    timings: Timings,
    faults: Faults | None = None,
    say: Say = lambda _: None,
    transport: Transport | None = None,
) -> Actor:
    """Make this rank's actor; simulators are numbered through the whole job, by worker.

    `transport` brings what was drawn from other ranks' memories.
    """
    if worker is None:
        return Idle()

    def simulators(start: int, count: int, cores: int) -> VectorEnv:
        numbers = start + np.arange(count)

        def make() -> VectorEnv:
            env = envs.make(config.env, count, cores)
            return FaultyEnv(env, faults, lambda: policy.version) if faults else env

        def rebuilt(reason: str) -> None:
            timings.rebuilt += 1
            say(f"simulators {start}-{start + count - 1} failed, {reason}; they were rebuilt and play new episodes")

        return rebuilding(config, make, lambda n: game_seeds(config.train.seed, REBUILT, n, numbers), rebuilt)

    make_actor = names.find("actor.kind", config.actor.kind)
    made: Actor = make_actor(config, simulators, policy, worker * config.env.n_sim, threads, timings)
    if config.actor.self_tuning:
        return SelfTuning(config, made, cast(Async, made).crew, say)
    if not config.experience.capacity_steps:
        return made
    spaces, history = envs.spaces(config.env), envs.history(config.env)
    return experience.make(config, made, policy, spaces, history, worker, transport, timings)


def evaluation_env(config: Config, threads: int) -> MakeEnv:
    """Say how to make simulators for evaluation: only the end of the game, or the length limit, ends an episode."""
    settings, frames, starts = config.evaluation_env, config.evaluate.max_frames, read_starts(config)

    def simulators(n_sim: int) -> VectorEnv:
        if starts:
            return StartedEnv(lambda: envs.make(settings, 1, 1, frames), n_sim, starts)
        return envs.make(settings, n_sim, threads, frames)

    def make(n_sim: int) -> VectorEnv:
        return rebuilding(config, lambda: simulators(n_sim), lambda _: np.arange(n_sim))

    return make


def rebuilding(
    config: Config, make: Callable[[], VectorEnv], seeds: Callable[[int], Array], rebuilt: Say = lambda _: None
) -> VectorEnv:
    return RebuildingEnv(make, seeds, config.env.step_seconds, config.env.rebuilds_per_minute, rebuilt)


def strategy(
    config: Config,
    transport: Transport,
    learner: Agent,
    rule: Optimizer,
    timings: Timings,
    progress: Progress,
    waits_for_all: Callable[[int], bool] = lambda _: False,
    owners: tuple[int, ...] = (0,),
) -> Strategy:
    """Make the strategy that updates `learner`; after an update for which `waits_for_all` is true, the next does."""
    learner.clock = progress.clock(config.train.total_steps)  # gradients for other weights than these are dropped
    around = Surroundings(transport, rule, timings, learner.clock, learner.follow, waits_for_all, owners)
    made: Strategy = names.find("comm.strategy", config.comm.strategy)(config.comm, around)
    return made
