"""Checks of values against each other, against the number of ranks, and against a saved run."""

from __future__ import annotations

from dba3c.config.messages import ConfigError
from dba3c.config.schema import Comm, Config


def check_contradictions(config: Config) -> None:
    """Refuse values that are fine alone but not together."""
    segment = config.env.n_sim * config.actor.n_steps
    if config.actor.kind == "lockstep" and config.batch_size != segment:
        raise ConfigError(
            f"train.batch_size={config.batch_size}: with actor.kind=lockstep a rank's batch is env.n_sim ×"
            f" actor.n_steps = {segment}; set train.batch_size=auto or {segment}, or actor.kind=async"
        )
    if config.comm.strategy != "backup" and config.comm.n_backup:
        raise ConfigError(f"comm.n_backup={config.comm.n_backup}: has no effect without comm.strategy=backup; set both")
    if config.comm.strategy in ("server", "hogwild"):
        check_asynchronous(config)
    if not config.optimizer.shared and (config.comm.strategy, config.optimizer.name) != ("hogwild", "rmsprop"):
        raise ConfigError("optimizer.shared=false: only with comm.strategy=hogwild and optimizer.name=rmsprop")
    if config.debug.staleness and config.comm.strategy != "allreduce":
        raise ConfigError(f"debug.staleness={config.debug.staleness}: only with comm.strategy=allreduce")
    if config.algorithm.name == "ppo":
        check_ppo(config)
    if config.model.memory and config.batch_size % config.actor.n_steps:
        raise ConfigError(
            f"train.batch_size={config.batch_size}: with model.memory a batch has whole segments; use a multiple of"
            f" actor.n_steps={config.actor.n_steps}"
        )
    if config.actor.shards > 1:
        check_shards(config)
    if config.env.n_sim % config.actor.group_size:
        raise ConfigError(
            f"actor.group_size={config.actor.group_size}: must divide env.n_sim={config.env.n_sim} into equal groups"
        )


def check_shards(config: Config) -> None:
    """Refuse shards that would not be equal, or that an actor does not have."""
    if config.actor.kind != "lockstep":
        raise ConfigError(
            f"actor.shards={config.actor.shards}: actor.kind={config.actor.kind} has threads of its own; use lockstep"
        )
    if config.env.n_sim % config.actor.shards:
        raise ConfigError(
            f"actor.shards={config.actor.shards}: must divide env.n_sim={config.env.n_sim} into equal shards"
        )


def check_asynchronous(config: Config) -> None:
    """Refuse what does not go together with weights that change at any time."""
    if config.algorithm.name == "ppo":
        raise ConfigError(
            "algorithm.name=ppo: its passes over a segment expect the weights to change by their own updates only;"
            f" comm.strategy={config.comm.strategy} needs another algorithm, such as a3c"
        )
    if config.comm.transport != "mpi":
        raise ConfigError(f"comm.transport={config.comm.transport}: comm.strategy={config.comm.strategy} needs mpi")
    if config.comm.strategy == "hogwild" and (config.comm.dedicated or config.comm.aggregate > 1):
        raise ConfigError("comm.strategy=hogwild: has no servers; comm.dedicated and comm.aggregate need server")
    if config.comm.strategy == "hogwild" and config.comm.on_failure == "shrink":
        raise ConfigError(
            "comm.on_failure=shrink: shared memory does not survive a failed rank; use comm.strategy=server"
        )


def check_ppo(config: Config) -> None:
    """Refuse what does not go together with several passes over a segment."""
    if config.debug.staleness:
        raise ConfigError(f"debug.staleness={config.debug.staleness}: algorithm.name=ppo needs its gradients at once")
    if config.actor.kind != "lockstep":
        raise ConfigError(
            f"actor.kind={config.actor.kind}: algorithm.name=ppo learns from whole segments; use lockstep"
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


def check_ranks(config: Config, ranks: int) -> None:
    """Refuse a run that could not make a single update."""
    if config.comm.strategy == "backup" and config.comm.n_backup >= ranks:
        raise ConfigError(
            f"comm.n_backup={config.comm.n_backup}: an update needs at least one of the {ranks} ranks;"
            f" use at most {ranks - 1}"
        )
    if config.comm.strategy == "server":
        check_server_ranks(config.comm, ranks)
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


# What saved weights and slots have no meaning without.
FIXED = (
    "env.game",
    "env.profile",
    "env.width",
    "model.torso",
    "model.hidden",
    "model.memory",
    "model.standardise",
    "optimizer.name",
)


def differences(saved: Config, wanted: Config) -> list[str]:
    """What a resumed run changes; ConfigError where the saved arrays would not fit."""
    old, new = saved.flat(), wanted.flat()
    changed = [name for name in new if old.get(name) != new[name] and not name.startswith("targets.")]
    for name in changed:
        if name in FIXED:
            raise ConfigError(
                f"{name}={new[name]!r}: the checkpoints in this run directory were trained with {old[name]!r};"
                " choose another --run-dir"
            )
    return [f"{name}: {old.get(name)!r} → {new[name]!r}" for name in changed]
