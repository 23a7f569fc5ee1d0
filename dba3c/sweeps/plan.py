"""The plan of a sweep: from a small yaml file to a list of trainings, each with its own run directory."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dba3c.config import auto, consistency, loading
from dba3c.config.comparison import shown as as_word
from dba3c.config.messages import ConfigError, cut, shown, suggest
from dba3c.config.schema import Config, file_name
from dba3c.config.strict_yaml import MOST_BYTES, parse_yaml
from dba3c.config.values import as_number
from dba3c.run_files import directory
from dba3c.run_files.untrusted import read as read_file
from dba3c.training import order
from dba3c.training.order import MOST_RANKS, Request

RUNS = Path("runs")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]{0,39}")
MOST_TRAININGS = 10_000
Number = BeforeValidator(as_number)
Seed = Annotated[int, Field(ge=0, lt=2**32), Number]
Value = bool | int | float | str | None


def listed(value: Any) -> Any:
    """One game may stand without brackets."""
    return [value] if isinstance(value, str) else value


class Sheet(BaseModel):
    """What the file may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    games: Annotated[list[str], Field(min_length=1, max_length=1000), BeforeValidator(listed)]
    seeds: (
        Annotated[int, Field(ge=1, le=1000), Number] | Annotated[list[Seed], Field(min_length=1, max_length=1000)]
    ) = 1
    preset: str = auto.NAME
    ranks: Annotated[int, Field(ge=1, le=MOST_RANKS), Number] = 1
    common: dict[str, Value] = Field(default_factory=dict)  # section.key → value, for all trainings
    settings: dict[str, dict[str, Value] | None] = Field(default_factory=dict)  # name → what differs; preset, too


class Training(NamedTuple):
    """One training of a sweep."""

    name: str  # also that of its run directory
    run_dir: Path
    request: Request
    plugins: tuple[str, ...] = ()

    @property
    def settings(self) -> list[str]:
        """The words that plug-ins and settings take."""
        return [f"--plugin={name}" for name in self.plugins] + [f"--{word}" for word in self.request.overrides]

    @property
    def words(self) -> list[str]:
        """What follows `dba3c train`."""
        ranks = ["--ranks", str(self.request.ranks)] if self.request.ranks != 1 else []
        return [*ranks, "--preset", self.request.preset, "--run-dir", str(self.run_dir), *self.settings]

    @property
    def command(self) -> str:
        return shlex.join(["dba3c", "train", *self.words])

    @property
    def ranks(self) -> int:
        return self.request.ranks or 1

    @property
    def config(self) -> Config:
        """Resolve the configuration; ConfigError if something is wrong with it."""
        config = order.resolve(self.request, self.ranks, order.saved_config(self.run_dir)).config
        consistency.check_ranks(config, self.ranks)
        return config

    @property
    def finished(self) -> bool:
        """Whether the training has come to its end with the very settings of the plan."""
        return directory.exit_code(self.run_dir) == 0 and order.saved_config(self.run_dir) == self.config


def read(file: Path, folder: Path, plugins: Sequence[str] = ()) -> list[Training]:
    """Read the plan, whose run directories are in `folder`; ConfigError if any training of it would be refused.

    `plugins` are loaded already, and named again to each training.
    """
    sheet = read_sheet(file)
    seeds = list(range(sheet.seeds)) if isinstance(sheet.seeds, int) else sheet.seeds
    settings = {name: changes or {} for name, changes in (sheet.settings or {"": {}}).items()}
    trainings = [
        training(sheet, folder, game, name, changes, seed)._replace(plugins=tuple(plugins))
        for game in sheet.games
        for name, changes in settings.items()
        for seed in seeds
    ]
    refuse(file, trainings, list(settings))
    return trainings


def read_sheet(file: Path) -> Sheet:
    try:
        values = parse_yaml(read_file(file, MOST_BYTES).decode(), str(file))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: must hold games: and, if you like, {', '.join([*Sheet.model_fields][1:])}")
    try:
        return Sheet.model_validate(values)
    except ValidationError as error:
        wrong = error.errors()[0]
        key = ".".join(cut(str(part)) for part in wrong["loc"][:2] if "[" not in str(part))
        if wrong["type"] == "extra_forbidden":
            raise ConfigError(f"{file}: {key}: no such key{suggest(key, Sheet.model_fields)}") from None
        given = "" if wrong["type"] == "missing" else f"={shown(wrong['input'])}"
        raise ConfigError(f"{file}: {key}{given}: {wrong['msg'][0].lower()}{wrong['msg'][1:]}") from None


def training(sheet: Sheet, folder: Path, game: str, name: str, changes: dict[str, Value], seed: int) -> Training:
    """Make one training; what its settings say wins over what is common."""
    values = {"preset": sheet.preset} | sheet.common | changes
    preset = str(values.pop("preset"))
    overrides = [f"{key}={as_word(value)}" for key, value in values.items()] + [f"train.seed={seed}"]
    profile, title = order.find_game(preset, [*overrides, f"env.game={game}"], loading.HYPERPARAMS, "games")
    overrides.append(f"env.game={title}")
    full_name = "-".join(filter(None, [file_name(title), name, str(seed)]))
    run_dir = folder / full_name
    asked = Request(preset, overrides, loading.HYPERPARAMS, title, profile, run_dir, sheet.ranks, False)
    return Training(full_name, run_dir, asked)


def refuse(file: Path, trainings: list[Training], settings: list[str]) -> None:
    """Raise ConfigError for names that files cannot have, for two trainings in one place, and for wrong settings."""
    for name in filter(None, settings):
        if not NAME.fullmatch(name):
            raise ConfigError(f"{file}: settings.{cut(name)}: use a name of letters, digits, _ and .")
    names = [training.name for training in trainings]
    if len(names) > MOST_TRAININGS:
        raise ConfigError(f"{file}: has {len(names):,} trainings; at most {MOST_TRAININGS:,} fit into a sweep")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{file}: {twice} is there twice; name each game and each seed once")
    for one in trainings:
        try:
            _ = one.config
        except ConfigError as error:
            raise ConfigError(f"{file}: {one.name}: {error}") from None
