"""A resolved configuration → the shortest command that gives it."""

from __future__ import annotations

from typing import Any, NamedTuple

from dba3c.config import loading
from dba3c.config.schema import Config


class Recipe(NamedTuple):
    preset: str
    overrides: dict[str, Any]  # section.key → value, where the configuration is not the preset's

    def command(self, ranks: int, run_dir: str, seeds: list[int]) -> str:
        """What to type; for several seeds, one after the other."""
        game = self.overrides.get("env.game")
        words = ["python -m dba3c.train", f"--preset {self.preset}"]
        words += [f"--game {game}"] if game is not None else []
        words += [f"--{name}={shown(value)}" for name, value in self.overrides.items() if name not in APART]
        if len(seeds) > 1:
            words += ["--train.seed=$seed", f"--run-dir {run_dir}-$seed"]
            return f"for seed in {' '.join(map(str, seeds))}; do {launched(ranks)}{' '.join(words)}; done"
        words += [f"--train.seed={seeds[0]}"] if seeds[0] else []
        return launched(ranks) + " ".join([*words, f"--run-dir {run_dir}"])


APART = ("env.game", "train.seed")  # said in other words


def launched(ranks: int) -> str:
    return f"mpirun -np {ranks} " if ranks > 1 else ""


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def recipe(config: Config) -> Recipe:
    """The preset that is nearest, and what is different from it; the game and the seed count for nothing."""
    presets = loading.read_yaml(loading.HYPERPARAMS)["presets"]
    candidates = [Recipe(name, different(loading.load(name), config)) for name in presets]
    return min(candidates, key=lambda one: len(set(one.overrides) - {*APART}))


def different(preset: Config, config: Config) -> dict[str, Any]:
    old, new = preset.flat(), config.flat()
    return {name: value for name, value in new.items() if old.get(name) != value and not name.startswith("targets.")}
