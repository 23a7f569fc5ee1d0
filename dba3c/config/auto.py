"""Preset auto: the recipe for a game and a number of ranks, with the simulators that it was tuned with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dba3c.config import loading
from dba3c.config.comparison import FIXED
from dba3c.config.schema import Config

NAME = "auto"
TUNED_SIMULATORS = 16  # in the whole job, by fast and ppo: docs/tuning.md
OWN_PRESETS = {"catch": "catch", "gymnasium": "ppo-control"}  # profiles that have one, whatever the ranks
MANY_RANKS = 16  # with one simulator each, more ranks than this would change what was tuned


class Choice(NamedTuple):
    """A preset, and the simulators per rank that replace its own."""

    preset: str
    n_sim: int | None


class Resolved(NamedTuple):
    """A configuration, and one line that says what was chosen and why."""

    config: Config
    note: str


def few_ranks(game: str, ranks: int, profile: str = "") -> Choice:
    """Choose what was tuned on few cores; the ranks share its simulators as evenly as they can."""
    preset = OWN_PRESETS.get(profile) or ("fast" if game == "breakout" else "ppo")
    return Choice(preset, max(1, round(TUNED_SIMULATORS / ranks)))


def many_ranks(game: str, profile: str = "") -> Choice:
    """Choose the paper's recipe for large batches, which is defined per rank."""
    return Choice(OWN_PRESETS.get(profile) or ("paper-pong" if game == "pong" else "paper"), None)


def resolve(
    game: str,
    ranks: int,
    overrides: Iterable[str] = (),
    path: Path = loading.HYPERPARAMS,
    saved: Config | None = None,
    profile: str = "",
) -> Resolved:
    """Resolve the configuration; what is given in a file or on the command line wins.

    A run that began with the other recipe, `saved`, goes on with it on any number of ranks.
    """
    given = [*overrides]
    choices = [few_ranks(game, ranks, profile), many_ranks(game, profile)]
    choice, other = choices if ranks < MANY_RANKS else choices[::-1]
    config = loading.load(choice.preset, given, path, choice.n_sim)
    why = "the large-batch recipe" if ranks >= MANY_RANKS else ""
    if saved is not None and not fits(saved, config):
        alternative = loading.load(other.preset, given, path, other.n_sim)
        if fits(saved, alternative):
            choice, config, why = other, alternative, "as this run began"
    complete = {*config.flat()} <= loading.given(given, path)
    return Resolved(config, "" if complete else describe(choice, config, ranks, why))


def fits(saved: Config, config: Config) -> bool:
    """Whether saved weights can be used with a configuration."""
    old, new = saved.flat(), config.flat()
    return all(old[name] == new[name] for name in FIXED if name != "env.game")


def describe(choice: Choice, config: Config, ranks: int, why: str) -> str:
    """Say in one line what was chosen, and why."""
    simulators = config.env.n_sim * ranks
    layout = f"{ranks} rank{'s' * (ranks > 1)} × {config.env.n_sim} simulators"
    reason = f", {why}" if why else f" for {config.env.game}"
    chosen = f"preset auto chose {choice.preset}{reason}: {layout}"
    if choice.n_sim is None:
        return f"{chosen}, {ranks * config.batch_size:,} samples per update; --preset fast or ppo is for few cores"
    if config.env.n_sim != choice.n_sim:
        return f"{chosen}, as asked for; it was tuned with {TUNED_SIMULATORS} in all"
    if simulators != TUNED_SIMULATORS:
        return f"{chosen} = {simulators}, the nearest to the {TUNED_SIMULATORS} that it was tuned with"
    return f"{chosen} = {simulators}, as it was tuned"
