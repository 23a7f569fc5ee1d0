"""Checks of values against each other, against the number of ranks, and against a saved run."""

from __future__ import annotations

from dba3c.config.messages import ConfigError
from dba3c.config.schema import PAPER_STICKY, Comm, Config

LONGEST_HISTORY = 4  # frames of an observation
THREADS: dict[str, tuple[str, object]] = {  # keys of actor → the kind that they are for, and what they are for others
    "shards": ("lockstep", 1),
    "agents": ("async", "all"),
    "predictors": ("async", 1),
    "trainers": ("async", 1),
    "self_tuning": ("async", False),
}


def check_contradictions(config: Config) -> None:
    """Refuse values that are fine alone but not together."""
    check_batch(config)
    if config.actor.kind == "episodes":
        check_episodes(config)
    if config.comm.strategy != "backup" and config.comm.n_backup:
        raise ConfigError(f"comm.n_backup={config.comm.n_backup}: has no effect without comm.strategy=backup; set both")
    check_asynchronous(config)
    if config.debug.staleness:
        check_late(config, f"debug.staleness={config.debug.staleness}")
    check_sticky(config)
    if config.several_passes:
        check_passes(config)
    if config.algorithm.name == "q":
        check_q(config)
    check_threads(config)
    if config.env.n_sim % config.actor.group_size:
        raise ConfigError(
            f"actor.group_size={config.actor.group_size}: must divide env.n_sim={config.env.n_sim} into equal groups"
        )


def check_batch(config: Config) -> None:
    """Refuse batches that do not consist of what is played."""
    segment = config.env.n_sim * config.actor.n_steps
    if config.experience.capacity_steps:
        check_experience(config)
    elif config.actor.kind == "lockstep" and config.batch_size != segment:
        raise ConfigError(
            f"train.batch_size={config.batch_size}: with actor.kind=lockstep a rank's batch is env.n_sim ×"
            f" actor.n_steps = {segment}; set train.batch_size=auto or {segment}, or actor.kind=async"
        )
    elif config.whole_segments and config.batch_size % config.actor.n_steps:
        why = "model.memory" if config.model.memory else f"algorithm.returns={config.algorithm.returns}"
        raise ConfigError(
            f"train.batch_size={config.batch_size}: with {why} a batch has whole segments; use a multiple of"
            f" actor.n_steps={config.actor.n_steps}"
        )


def check_experience(config: Config) -> None:
    """Refuse what a replay memory cannot do, or what could never be drawn from it."""
    experience, segment = config.experience, config.env.n_sim * config.actor.n_steps
    if config.algorithm.name != "q" or config.algorithm.returns not in ("one_step", "n_step"):
        raise ConfigError(
            f"experience.capacity_steps={experience.capacity_steps}: only algorithm.name=q with"
            " algorithm.returns=one_step learns from what older weights have played; or set it to 0"
        )
    if config.actor.kind != "lockstep":
        raise ConfigError(f"actor.kind={config.actor.kind}: experience is kept in the order of play; use lockstep")
    if config.checkpoint.restart_games:
        raise ConfigError("checkpoint.restart_games=true: a replay memory starts empty in any resumed run; use false")
    if config.env.normalise_observations or config.env.normalise_rewards:
        raise ConfigError("env.normalise_observations, _rewards: would count a sample of experience again and again")
    if experience.scope == "global" and (config.comm.strategy, config.comm.on_failure) != ("allreduce", "abort"):
        need = "all ranks must keep and draw at the same time; use comm.strategy=allreduce and comm.on_failure=abort"
        raise ConfigError(f"experience.scope=global: {need}")
    if segment % experience.steps_per_update:
        raise ConfigError(
            f"experience.steps_per_update={experience.steps_per_update}: must divide the env.n_sim × actor.n_steps ="
            f" {segment} steps that are played at a time"
        )
    least = config.env.n_sim * (experience.n_steps + LONGEST_HISTORY)
    if experience.warm_up_steps < least or experience.capacity_steps < experience.warm_up_steps + least:
        raise ConfigError(
            f"experience.warm_up_steps={experience.warm_up_steps}: must be at least {least} and at most"
            f" experience.capacity_steps={experience.capacity_steps} less {least}"
        )


def check_episodes(config: Config) -> None:
    """Refuse what does not go together with segments of whole episodes."""
    n_sim, batch_size = config.env.n_sim, config.train.batch_size
    rank = "with actor.kind=episodes a rank"
    if n_sim != 1:
        raise ConfigError(f"env.n_sim={n_sim}: {rank} has one simulator; set env.n_sim=1 and use more ranks")
    if batch_size != "auto":
        raise ConfigError(f"train.batch_size={batch_size}: {rank}'s batch is one episode; set train.batch_size=auto")


def check_sticky(config: Config) -> None:
    """Refuse sticky actions where the profile has none, or has its own."""
    profile = config.env.profile
    if profile == "deepmind":
        return
    own = PAPER_STICKY if profile == "paper" else 0.0
    for name, value, unset in (("env", config.env.sticky, 0.0), ("evaluate", config.evaluate.sticky, "auto")):
        if value not in (unset, own):
            has = f"repeats actions with probability {own:g}, always" if own else "has no sticky actions"
            raise ConfigError(
                f"{name}.sticky={value:g}: env.profile={profile} {has}; leave it out, or use env.profile=deepmind"
            )


def check_threads(config: Config) -> None:
    """Refuse threads that an actor does not have, and shards that would not be equal."""
    actor = config.actor
    for key, (kind, usual) in THREADS.items():
        if getattr(actor, key) != usual and actor.kind != kind:
            value = str(getattr(actor, key)).lower()
            raise ConfigError(f"actor.{key}={value}: actor.kind={actor.kind} has no such threads; use {kind}")
    if config.env.n_sim % actor.shards:
        raise ConfigError(f"actor.shards={actor.shards}: must divide env.n_sim={config.env.n_sim} into equal shards")
    groups = config.env.n_sim // actor.group_size
    if actor.agents != "all" and actor.agents > groups:
        raise ConfigError(
            f"actor.agents={actor.agents}: env.n_sim={config.env.n_sim} simulators in groups of"
            f" actor.group_size={actor.group_size} are {groups} agents; raise env.n_sim"
        )
    if actor.trainers > 1 or actor.self_tuning:
        check_late(config, "actor.self_tuning=true" if actor.self_tuning else f"actor.trainers={actor.trainers}")


def check_late(config: Config, setting: str) -> None:
    """Refuse what does not go together with gradients that are applied later."""
    if config.comm.strategy != "allreduce":
        raise ConfigError(f"{setting}: only with comm.strategy=allreduce")
    if config.env.normalise_observations or config.env.normalise_rewards:
        raise ConfigError(f"{setting}: the statistics that normalise cannot be late")


def check_asynchronous(config: Config) -> None:
    """Refuse what does not go together with weights that change at any time, and what needs such weights."""
    if not config.optimizer.shared and (config.comm.strategy, config.optimizer.name) != ("hogwild", "rmsprop"):
        raise ConfigError("optimizer.shared=false: only with comm.strategy=hogwild and optimizer.name=rmsprop")
    if config.comm.strategy not in ("server", "hogwild"):
        return
    for key in ("normalise_observations", "normalise_rewards"):
        if getattr(config.env, key):
            raise ConfigError(
                f"env.{key}=true: its statistics are the same on all ranks after every update, which"
                f" comm.strategy={config.comm.strategy} is without; use allreduce or backup"
            )
    if config.several_passes:
        raise ConfigError(
            f"algorithm.name={config.algorithm.name}: its passes over a segment expect the weights to change by their"
            f" own updates only; comm.strategy={config.comm.strategy} needs another algorithm, such as a3c"
        )
    if config.comm.transport != "mpi":
        raise ConfigError(f"comm.transport={config.comm.transport}: comm.strategy={config.comm.strategy} needs mpi")
    if config.comm.strategy == "hogwild" and (config.comm.dedicated or config.comm.aggregate > 1):
        raise ConfigError("comm.strategy=hogwild: has no servers; comm.dedicated and comm.aggregate need server")
    if config.comm.strategy == "hogwild" and config.comm.on_failure == "shrink":
        raise ConfigError("comm.on_failure=shrink: shared memory dies with a rank; use comm.strategy=server")


def check_passes(config: Config) -> None:
    """Refuse what does not go together with several passes over a segment."""
    name = config.algorithm.name
    if config.debug.staleness:
        stale = config.debug.staleness
        raise ConfigError(f"debug.staleness={stale}: algorithm.name={name} needs its gradients at once")
    if config.actor.kind != "lockstep":
        raise ConfigError(
            f"actor.kind={config.actor.kind}: algorithm.name={name} learns from whole segments; use lockstep"
        )
    minibatches, updates = config.algorithm.minibatches, config.algorithm.minibatches * config.algorithm.passes
    # With a memory a minibatch has some simulators' whole sequences, else some time steps of all simulators.
    cut, length = ("env.n_sim", config.env.n_sim) if config.model.memory else ("actor.n_steps", config.actor.n_steps)
    if length % minibatches:
        raise ConfigError(f"algorithm.minibatches={minibatches}: must divide {cut}={length}")
    if config.checkpoint.restart_games and config.checkpoint.every_updates % updates:
        raise ConfigError(
            f"checkpoint.every_updates={config.checkpoint.every_updates}: with checkpoint.restart_games it must be a"
            f" multiple of the {updates} updates that algorithm.passes × algorithm.minibatches take from a segment"
        )


def check_q(config: Config) -> None:
    """Refuse what would make the targets of Q-learning wrong, and a torso for a value that it does not have."""
    if config.model.separate:
        raise ConfigError("model.separate=true: algorithm.name=q has no value to give a torso; set it to false")
    if config.model.memory:
        raise ConfigError(
            f"model.memory={config.model.memory}: algorithm.name=q has no memory for its target network; use"
            " model.memory=0, or another algorithm, such as a3c"
        )
    if config.algorithm.returns == "sarsa" and config.actor.kind == "lockstep" and not config.actor.carry:
        raise ConfigError(
            "actor.carry=false: algorithm.returns=sarsa learns from the action that is really taken after a segment;"
            " set actor.carry=true"
        )


def check_ranks(config: Config, ranks: int) -> None:
    """Refuse a run that could not make a single update."""
    if config.comm.strategy == "backup" and config.comm.n_backup >= ranks:
        raise ConfigError(
            f"comm.n_backup={config.comm.n_backup}: an update needs at least one of the {ranks} ranks;"
            f" use at most {ranks - 1}"
        )
    if config.comm.strategy == "server":
        check_server_ranks(config.comm, ranks)
    if config.actor.self_tuning and ranks > 1:
        raise ConfigError(
            f"actor.self_tuning=true: {ranks} ranks wait for each other, so that none can see what its own threads are"
            " worth; use one rank"
        )
    slow = config.debug.slow_rank.partition(",")[0]
    if slow != "none" and (not slow.isdigit() or int(slow) >= ranks):
        raise ConfigError(f"debug.slow_rank={config.debug.slow_rank}: there is no rank {slow} among {ranks}")
    effective = config.batch_size * ranks
    if config.train.total_steps < effective:
        raise ConfigError(
            f"train.total_steps={config.train.total_steps}: is less than one update of {ranks} ranks × "
            f"{config.batch_size} samples = {effective}; raise it, or lower train.batch_size or env.n_sim"
        )


def check_server_ranks(config: Comm, ranks: int) -> None:
    """Refuse servers that leave no rank to play, and updates that wait for more gradients than there can be."""
    players = ranks - config.servers if config.dedicated else ranks
    if players < 1:
        raise ConfigError(
            f"comm.servers={config.servers}: with comm.dedicated at least one of the {ranks} ranks must play; use at"
            f" most {ranks - 1}, or comm.dedicated=false"
        )
    if config.aggregate > players:
        raise ConfigError(f"comm.aggregate={config.aggregate}: only {players} ranks have gradients")
