"""The typed sections of the configuration: the numbers live in hyperparams.yaml, their types and ranges here."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from dba3c.config import names
from dba3c.config.schedules import Schedule

THOUSANDS = {"k": 1e3, "M": 1e6, "G": 1e9}


def as_number(value: Any) -> Any:
    """Python counts True as 1, but nobody means that; PyYAML takes 1e6, 10k and 1M for words, but nobody does."""
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    with suppress(ValueError):
        if isinstance(value, str) and value[-1:] in THOUSANDS:
            return round(float(value[:-1]) * THOUSANDS[value[-1]], 6)  # 0.7M is not 699999.9999999999
        return float(value) if isinstance(value, str) else value
    return value


Number = BeforeValidator(as_number)
Count = Annotated[int, Field(ge=1, le=10**9), Number]
CountOrNever = Annotated[int, Field(ge=0, le=10**9), Number]
Steps = Annotated[int, Field(ge=1, le=10**12), Number]  # a century at 300 steps/s; clocks and displays can count it
Units = Annotated[int, Field(ge=1, le=2**16), Number]
Fraction = Annotated[float, Field(ge=0, lt=1), Number]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), Number]
Seconds = Annotated[float, Field(gt=0, le=10**9), Number]  # what operating systems can wait for
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
SecondsOrNever = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
MinutesOrNever = Annotated[float, Field(ge=0, le=10**7), Number]
Score = Annotated[float, Field(allow_inf_nan=False), Number]


def named(key: str) -> AfterValidator:
    """Accept the names that the registry has for this key."""
    return AfterValidator(partial(names.check, key))


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Env(Section):
    game: Annotated[str, Field(min_length=1, max_length=100)]
    profile: Annotated[str, named("env.profile")]
    n_sim: Count
    life_loss_terminal: bool
    fire_reset: bool
    max_frames: Count
    reward_clip: Positive
    step_seconds: Seconds
    rebuilds_per_minute: Count
    width: Annotated[int, Field(ge=5, le=21), Number]
    blind: bool


class Model(Section):
    torso: Annotated[str, named("model.torso")]
    hidden: Units
    memory: Annotated[int, Field(ge=0, le=2**12), Number]
    init: Literal["torso", "torch"]
    standardise: bool


class Actor(Section):
    kind: Annotated[str, named("actor.kind")]
    n_steps: Count
    group_size: Count
    queue_batches: Count
    shards: Count


class Algorithm(Section):
    name: Annotated[str, named("algorithm.name")]
    gamma: Annotated[float, Field(ge=0, le=1), Number]
    entropy: Weight
    entropy_schedule: Schedule
    value: Weight
    loss_scale: Positive
    clip: Literal["none", "tensor", "global"]
    clip_norm: Positive
    gae_lambda: Annotated[float, Field(ge=0, le=1), Number]
    passes: Count
    minibatches: Count
    ratio_clip: Annotated[float, Field(gt=0, lt=1), Number]


class Optimizer(Section):
    name: Annotated[str, named("optimizer.name")]
    learning_rate: Positive
    schedule: Schedule
    beta1: Fraction
    beta2: Fraction
    epsilon: Positive
    decay: Fraction
    momentum: Fraction
    mean_square: Weight
    shared: bool


class Comm(Section):
    strategy: Annotated[str, named("comm.strategy")]
    n_backup: CountOrNever
    servers: Count
    dedicated: bool
    aggregate: Count
    max_staleness: CountOrNever
    transport: Annotated[str, named("comm.transport")]
    check_every_updates: CountOrNever
    silence_seconds: Seconds
    on_failure: Literal["abort", "shrink"]


def null_as_none(value: Any) -> Any:
    """yaml's null says the same as the word none."""
    return "none" if value is None else value


class Train(Section):
    batch_size: Count | Literal["auto"]
    total_steps: Steps
    max_minutes: MinutesOrNever
    seed: Annotated[int, Field(ge=0, lt=2**32), Number]
    target_score: Annotated[Score | Literal["auto", "none"], BeforeValidator(null_as_none)]
    max_bad_updates: Count
    log_every_seconds: Seconds


class Evaluate(Section):
    every_updates: CountOrNever
    games: CountOrNever
    probe_games: CountOrNever
    max_frames: Count


class Checkpoint(Section):
    every_updates: CountOrNever
    every_seconds: SecondsOrNever
    keep: Count
    save_seconds: Positive
    restart_games: bool


# A comma, as yaml takes 1:30 for ninety and 0x3 for three.
PAIR = r"^(none|[0-9]{1,9}(\.[0-9]{1,9})?,[0-9]{1,9}(\.[0-9]{1,9})?)$"
Slowdown = Annotated[str, Field(pattern=PAIR), BeforeValidator(null_as_none)]


class Debug(Section):
    slow_rank: Slowdown
    delays: Slowdown
    staleness: Annotated[int, Field(ge=0, le=10**4), Number]


class Config(Section):
    env: Env
    model: Model
    actor: Actor
    algorithm: Algorithm
    optimizer: Optimizer
    comm: Comm
    train: Train
    evaluate: Evaluate
    checkpoint: Checkpoint
    debug: Debug
    targets: dict[str, Score]

    @property
    def batch_size(self) -> int:
        """Samples per rank and update."""
        size = self.train.batch_size
        return self.env.n_sim * self.actor.n_steps if size == "auto" else size

    @property
    def target_score(self) -> float | None:
        """Evaluation score that ends training, if any."""
        target = self.train.target_score
        if target == "auto":
            return self.targets.get(self.env.game)
        return None if target == "none" else float(target)

    @property
    def without_probe(self) -> Config:
        """The same, but every evaluation plays all its games."""
        return self.model_copy(update={"evaluate": self.evaluate.model_copy(update={"probe_games": 0})})

    def flat(self) -> dict[str, Any]:
        """Every value by its name on the command line, section.key."""
        return {f"{name}.{key}": value for name, keys in self.model_dump().items() for key, value in keys.items()}

    def dump(self) -> str:
        return yaml.safe_dump(self.model_dump(), sort_keys=False)
