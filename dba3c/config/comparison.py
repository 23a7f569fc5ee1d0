"""How configurations differ: from the nearest preset, as a command line, and from that of a saved run."""

from __future__ import annotations

from typing import NamedTuple

from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config

GAME_AND_SEED = ("env.game", "train.seed")  # keys that have their own place in a command, and do not count as changes


class Recipe(NamedTuple):
    """A preset, and what must be changed in it."""

    preset: str
    overrides: dict[str, object]  # section.key → value, where the configuration differs from the preset

    def command(self, ranks: int, run_dir: str, seeds: list[int]) -> str:
        """Return the command that trains; for several seeds, a shell loop that trains one after the other."""
        game = self.overrides.get("env.game")
        words = ["python -m dba3c.train", f"--preset {self.preset}"]
        words += [f"--game {game}"] if game is not None else []
        words += [option(name, value) for name, value in self.overrides.items() if name not in GAME_AND_SEED]
        if len(seeds) > 1:
            words += ["--train.seed=$seed", f"--run-dir {run_dir}-$seed"]
            return f"for seed in {' '.join(map(str, seeds))}; do {launched(ranks)}{' '.join(words)}; done"
        words += [f"--train.seed={seeds[0]}"] if seeds[0] else []
        return launched(ranks) + " ".join([*words, f"--run-dir {run_dir}"])


def launched(ranks: int) -> str:
    """Return how a command on this many ranks begins."""
    return f"mpirun -np {ranks} " if ranks > 1 else ""


def option(name: str, value: object) -> str:
    """Format a changed key as an option; a plug-in, which has a hash for a value, as its file."""
    section, _, key = name.partition(".")
    return f"--plugin {key}.py" if section == "plugins" else f"--{name}={shown(value)}"


def shown(value: object) -> str:
    """Format a value as the command line accepts it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def recipe(config: Config) -> Recipe:
    """Find the preset with the fewest differences from a configuration, game and seed aside."""
    candidates = [Recipe(name, different(loading.load(name), config)) for name in loading.preset_names()]
    return min(candidates, key=lambda candidate: len(set(candidate.overrides) - {*GAME_AND_SEED}))


def different(preset: Config, config: Config) -> dict[str, object]:
    """Return the keys whose values differ, and the configuration's values; plug-ins differ from every preset."""
    old, new = preset.model_copy(update={"plugins": {}}).flat(), config.flat()
    return {name: value for name, value in new.items() if old.get(name) != value and not name.startswith("targets.")}


# What weights have no meaning without; and what saved weights and slots have none without.
SHAPING = (
    "env.profile",
    "env.width",
    "env.normalise_observations",
    "env.normalise_rewards",
    "env.full_action_space",
    "model.torso",
    "model.hidden",
    "model.memory",
    "model.standardise",
    "model.separate",
)
FIXED = ("env.game", *SHAPING, "optimizer.name")


def differences(saved: Config, wanted: Config) -> list[str]:
    """What a resumed run changes; ConfigError where the saved arrays would not fit."""
    old, new = saved.flat(), wanted.flat()
    changed = [name for name in new if old.get(name) != new[name] and not name.startswith("targets.")]
    other_outputs = "q" in (old["algorithm.name"], new["algorithm.name"])  # those of a3c and ppo are the same
    for name in changed:
        if name in FIXED or (name == "algorithm.name" and other_outputs):
            raise ConfigError(
                f"{name}={new[name]!r}: the checkpoints in this run directory were trained with {old[name]!r};"
                " choose another --run-dir"
            )
    return [f"{name}: {old.get(name)!r} → {new[name]!r}" for name in changed]
