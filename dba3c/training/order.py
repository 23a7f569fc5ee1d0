"""What the user asked for: from the words of a command line to the configuration and the run directory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dba3c.config import auto, consistency, loading, plugins
from dba3c.config.messages import ConfigError, shown
from dba3c.config.schema import Config, file_name
from dba3c.config.strict_yaml import MOST_BYTES
from dba3c.job import handshake
from dba3c.job.command_line import Parser, split_overrides
from dba3c.job.exit import EXIT_OK, agreed
from dba3c.job.process import available_memory, load_tensorflow, say
from dba3c.job.world import World
from dba3c.run_files import trained_agents
from dba3c.run_files.checkpoint import Checkpoint
from dba3c.run_files.untrusted import read as read_file
from dba3c.training.evaluation import read_starts
from dba3c.training.ranks import prepare_plugins

MOST_RANKS = 1024  # that one machine could hold


class Request(NamedTuple):
    """What was typed, the game by its own name."""

    preset: str
    overrides: list[str]
    config_file: Path
    game: str
    profile: str
    run_dir: Path
    ranks: int | None  # to start on this machine
    dry_run: bool
    init: str | None = None  # run directory, file or game: the agent whose weights a new run starts from


class Order(NamedTuple):
    """What is to be trained, and where."""

    config: Config
    run_dir: Path
    note: str  # what preset auto chose, and why; or what a preset is called now


def request(parser: Parser, argv: list[str], size: int | None = None) -> Request:
    """Read the words of a training, which runs on `size` ranks already; ConfigError if something is wrong with them."""
    named, words = (argv[:1], argv[1:]) if argv and not argv[0].startswith("-") else ([], argv)
    options, rest = parser.parse_known_args(words)
    check_ranks(options.ranks, size)
    overrides = split_overrides(rest)
    overrides += [f"env.game={game}" for game in (options.game, *named) if game is not None]
    load_package(overrides)
    profile, game = find_game(options.preset, overrides, options.config)
    overrides.append(f"env.game={game}")
    run_dir = options.run_dir or Path("runs") / file_name(game)
    how = options.ranks, options.dry_run, options.init
    return Request(options.preset, overrides, options.config, game, profile, run_dir, *how)


def load_package(overrides: list[str]) -> None:
    """Load the package of an environment that was typed as package:Name-v0, as a plug-in."""
    typed = [word.partition("=")[2] for word in overrides if word.startswith("env.game=")]
    package = typed[-1].rpartition(":")[0] if typed else ""
    try:
        plugins.load([package] if package else [])
    except plugins.PluginError as error:
        raise ConfigError(f"env.game={shown(typed[-1])}: {error}") from None


def find_game(preset: str, overrides: list[str], config_file: Path, field: str = "env.game") -> tuple[str, str]:
    """Return the profile and the game's own name; ConfigError, which names the field, if there is no such game."""
    from dba3c import envs  # loads ale-py, which --help need not wait for

    automatic = preset == auto.NAME
    profile, name = loading.title("paper" if automatic else preset, overrides, config_file)
    if automatic and "env.profile" not in loading.given(overrides, config_file):
        profile = envs.profile_of(name)
    return profile, envs.resolve_title(profile, name, field)


def resolve(asked: Request, ranks: int, saved: Config | None = None) -> Order:
    """Resolve the configuration for this many ranks; `saved` is that of the run which is resumed."""
    from dba3c import envs

    if asked.preset == auto.NAME:
        config, note = auto.resolve(asked.game, ranks, asked.overrides, asked.config_file, saved, asked.profile)
    else:
        config = loading.load(asked.preset, asked.overrides, asked.config_file)
        note = loading.note_renamed(asked.preset)
    for name in config.targets:
        envs.resolve_title(envs.profile_of(name), name, "targets")
    return Order(config, asked.run_dir, note)


def agree(world: World, parser: Callable[[], Parser], argv: list[str]) -> tuple[Request, Order]:
    """Resolve the command line on all ranks of a job, which leave together if it is refused or if they differ."""
    from dba3c import envs  # loads ale-py

    prepare_plugins(world, argv)
    asked = agreed(world, lambda: request(parser(), argv, world.size))
    saved = world.comm.bcast(saved_config(asked.run_dir) if world.rank == 0 else None)
    order = agreed(world, lambda: resolve(asked, world.size, saved))
    config = order.config
    agreed(world, lambda: handshake.check(world.comm, config, envs.fingerprint(config.env), world.hosts))
    agreed(world, lambda: consistency.check_ranks(config, world.size))
    agreed(world, lambda: refuse_unusable(config, world))
    return asked, order


def first_agent(asked: Request) -> Checkpoint | None:
    """Load the agent that a new run starts from; None if none was named, or if the run has checkpoints of its own."""
    if asked.init is None:
        return None
    from dba3c.envs import resolve_title

    agent = trained_agents.named(asked.init, resolve_title, "--init")
    if saved_config(asked.run_dir) is not None:
        say(f"--init={asked.init}: {asked.run_dir} has checkpoints, which are resumed instead")
        return None
    updates, steps = agent.progress["updates"], agent.progress["steps"]
    say(f"starting from the weights of {asked.init}, which were trained for {updates:,} updates, {steps:,} steps")
    return agent


def saved_config(run_dir: Path) -> Config | None:
    """Read the configuration of a run that has checkpoints; None if there is none, or none that can be read."""
    with suppress(OSError, ValueError, ConfigError):
        if any((run_dir / "checkpoints").glob("*.npz")):
            return loading.parse(read_file(run_dir / "config.yaml", MOST_BYTES).decode())
    return None


def check_ranks(ranks: int | None, size: int | None) -> None:
    """Refuse an option --ranks that cannot be, or that is not the number of ranks there are."""
    if ranks is not None and not 1 <= ranks <= MOST_RANKS:
        raise ConfigError(f"--ranks={ranks}: must be a number from 1 to {MOST_RANKS}")
    if ranks is not None and size is not None and ranks != size:
        raise ConfigError(f"--ranks={ranks}: this job has {size} ranks; leave --ranks out under mpirun and srun")


def say_chosen(note: str, rank: int) -> None:
    """Say once in the whole job what preset was chosen."""
    if note and rank == 0:
        say(note)


def show(order: Order, ranks: int) -> int:
    """Print what would be trained; return the exit code."""
    load_tensorflow(1)
    print(dry_run(order, ranks))
    return EXIT_OK


def dry_run(order: Order, ranks: int) -> str:
    """Say what would be trained: layout, batch, message, and how it ends."""
    from dba3c.training import build

    config, agent = order.config, build.agent(order.config)
    parameters = agent.layout.total
    updates = len(list(agent.algorithm.minibatches(config.actor.n_steps, 0, 0)))  # from one segment
    batch = config.batch_size
    played = config.experience.steps_per_update if config.experience.capacity_steps else batch  # by a rank, per batch
    cells = f" {config.model.memory} LSTM cells," if config.model.memory else ""
    rows = {
        "game": f"{config.env.game}, profile {config.env.profile}",
        "ranks": f"{ranks} × {config.env.n_sim} simulators = {ranks * config.env.n_sim}",
        "batch": f"{ranks} × {batch:,} samples = {ranks * batch:,}, for {updates} update{'s' * (updates > 1)}",
        "network": f"{config.model.torso}, {config.model.hidden} hidden units,{cells} {parameters:,} parameters",
        "message": f"{4 * parameters / 1e6:.1f} MB from each rank in every update, {config.comm.strategy}",
        "end": ends(config, config.train.total_steps * updates // (ranks * played)),
        "run": f"{order.run_dir}, {'is resumed' if saved_config(order.run_dir) else 'is new'}",
    }
    return "\n".join([*filter(None, [order.note]), *(f"{name:8} {text}" for name, text in rows.items())])


def ends(config: Config, updates: int) -> str:
    """Say what ends a training."""
    ways = [f"after {config.train.total_steps:,} steps (about {updates:,} updates)"]
    ways += [f"after {config.train.max_minutes:g} minutes"] if config.train.max_minutes else []
    if config.target_score is not None and config.evaluate.games:
        times, played = config.evaluate.in_a_row, f"{config.evaluate.games} {config.evaluation_episodes}"
        in_a_row = f" in {times} evaluations in a row" if times > 1 else ""
        ways.append(f"when the mean of {played} reaches {config.target_score:g}{in_a_row}")
    return ", or ".join(ways)


def refuse_unusable(config: Config, world: World) -> None:
    """Refuse what the libraries and hosts of this job cannot do."""
    from dba3c import comm  # starts MPI, which --help need not

    comm.refuse_unusable(config.comm, world.hosts)
    read_starts(config)
    if config.experience.capacity_steps:
        refuse_large_experience(config, world.hosts.count(world.host), available_memory())


def refuse_large_experience(config: Config, ranks_of_host: int, available: int) -> None:
    """Refuse replay memories that will not fit on this host, beside each other, before hours have filled them."""
    from dba3c import envs  # loads ale-py, which --help need not wait for
    from dba3c.actors.experience import bytes_per_step

    per_step = bytes_per_step(envs.spaces(config.env), envs.history(config.env))
    needed = per_step * config.experience.capacity_steps * ranks_of_host
    if needed > available:
        ranks = f"{ranks_of_host} rank{'s' * (ranks_of_host > 1)}"
        fits = available // per_step // ranks_of_host
        raise ConfigError(
            f"experience.capacity_steps={config.experience.capacity_steps}: {ranks} of this host would keep"
            f" {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are available; use at most {fits}, or fewer ranks"
        )


def tensorflow_threads(config: Config, cores: int) -> int:
    """Return how many threads a call of TensorFlow may use: one, where several calls run side by side."""
    side_by_side = config.actor.shards > 1 or config.actor.predictors + config.actor.trainers > 2
    return 1 if side_by_side or config.actor.self_tuning else cores
