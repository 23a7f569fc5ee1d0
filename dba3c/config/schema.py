"""The typed sections of the configuration: the numbers live in hyperparams.yaml, their types and ranges here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dba3c.config.values import (
    Count,
    CountOrNever,
    Fraction,
    MinutesOrNever,
    Number,
    Positive,
    Probability,
    Schedule,
    Score,
    Seconds,
    SecondsOrNever,
    Slowdown,
    Steps,
    Threads,
    Units,
    Weight,
    named,
    null_as_none,
)

PAPER_STICKY = 0.25  # probability that the profile paper repeats the previous action in a frame: gym's -v0 games


def file_name(game: str) -> str:
    """Return a game's name as files can have it: package:Name-v0 and ALE/Pong-v5 are ids of gymnasium."""
    return game.replace(":", "-").replace("/", "-")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Env(Section):
    game: Annotated[str, Field(min_length=1, max_length=100)]
    profile: Annotated[str, named("env.profile")]
    n_sim: Count
    life_loss_terminal: bool
    fire_reset: bool
    noop_max: Annotated[int, Field(ge=0, le=10**4), Number]
    sticky: Fraction
    full_action_space: bool
    max_frames: Count
    reward_clip: Weight
    normalise_observations: bool
    normalise_rewards: bool
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
    separate: bool


class Actor(Section):
    kind: Annotated[str, named("actor.kind")]
    n_steps: Count
    group_size: Count
    queue_batches: Count
    carry: bool
    shards: Count
    agents: Count | Literal["all"]
    predictors: Threads
    trainers: Threads
    self_tuning: bool
    tuning_seconds: Seconds


class Algorithm(Section):
    name: Annotated[str, named("algorithm.name")]
    gamma: Probability
    entropy: Weight
    entropy_schedule: Schedule
    value: Weight
    loss_scale: Positive
    clip: Literal["none", "tensor", "global"]
    clip_norm: Positive
    gae_lambda: Probability
    passes: Count
    minibatches: Count
    ratio_clip: Annotated[float, Field(gt=0, lt=1), Number]
    variance: Literal["scalar", "each"]
    returns: Literal["one_step", "n_step", "sarsa", "lambda"]
    target_every_steps: Steps
    epsilons: Annotated[tuple[Probability, ...], Field(min_length=1, max_length=1000)]
    epsilon_steps: Steps
    epsilon_updates: CountOrNever
    target_every_updates: CountOrNever
    double: bool
    error_clip: Weight
    outlier_deviations: Weight


class Experience(Section):
    capacity_steps: Annotated[int, Field(ge=0, le=10**9), Number]
    scope: Literal["local", "global"]
    warm_up_steps: Count
    steps_per_update: Count
    n_steps: Annotated[int, Field(ge=1, le=1000), Number]


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
    square_sum: Weight
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
    in_a_row: Annotated[int, Field(ge=1, le=1000), Number]
    policy: Literal["greedy", "sampled", "epsilon"]
    epsilon: Probability
    sticky: Fraction | Literal["auto"]
    max_frames: Count
    starts: Annotated[str, Field(min_length=1, max_length=4096)]


class Checkpoint(Section):
    every_updates: CountOrNever
    every_seconds: SecondsOrNever
    keep: Count
    save_seconds: Positive
    restart_games: bool


class Debug(Section):
    slow_rank: Slowdown
    delays: Slowdown
    staleness: Annotated[int, Field(ge=0, le=10**4), Number]


class Config(Section):
    env: Env
    model: Model
    actor: Actor
    algorithm: Algorithm
    experience: Experience
    optimizer: Optimizer
    comm: Comm
    train: Train
    evaluate: Evaluate
    checkpoint: Checkpoint
    debug: Debug
    targets: dict[str, Score]
    plugins: dict[str, str] = {}  # name → hash of the file: what has registered parts and keys; never set by hand

    @property
    def batch_size(self) -> int:
        """Samples per rank and update."""
        size = self.train.batch_size
        return self.env.n_sim * self.actor.n_steps if size == "auto" else size

    @property
    def several_passes(self) -> bool:
        """Whether a segment is learned from in algorithm.passes × algorithm.minibatches updates."""
        return self.algorithm.name == "ppo" or (self.algorithm.name, self.algorithm.returns) == ("q", "lambda")

    @property
    def whole_segments(self) -> bool:
        """Whether learning needs segments as they were played: each step's successor, and what was remembered."""
        q_of_one_step = self.algorithm.name == "q" and self.algorithm.returns != "n_step"
        return self.model.memory > 0 or q_of_one_step

    @property
    def target_score(self) -> float | None:
        """Evaluation score that ends training, if any."""
        target = self.train.target_score
        if target == "auto":
            return self.targets.get(self.env.game)
        return None if target == "none" else float(target)

    @property
    def evaluation_env(self) -> Env:
        """The environment of an evaluation: only the end of the game, or the length limit, ends an episode."""
        return self.env.model_copy(update={"life_loss_terminal": False, "sticky": self.evaluation_sticky})

    @property
    def evaluation_sticky(self) -> float:
        """The probability that a frame of an evaluation repeats the previous action."""
        wanted = self.env.sticky if self.evaluate.sticky == "auto" else self.evaluate.sticky
        return PAPER_STICKY if self.env.profile == "paper" else wanted

    @property
    def evaluation_episodes(self) -> str:
        """What is played in an evaluation, for messages: greedy episodes."""
        chosen = self.evaluate.policy.replace("epsilon", f"epsilon-greedy ({self.evaluate.epsilon:g})")
        sticky = self.evaluation_sticky
        started = "" if self.evaluate.starts == "none" else f" from the starts of {self.evaluate.starts}"
        return f"{chosen} episodes" + (f" with sticky actions {sticky:g}" if sticky else "") + started

    @property
    def without_probe(self) -> Config:
        """The same, but every evaluation plays all its games."""
        return self.model_copy(update={"evaluate": self.evaluate.model_copy(update={"probe_games": 0})})

    def flat(self) -> dict[str, Any]:
        """Every value by its name on the command line, section.key."""
        return {f"{name}.{key}": value for name, keys in self.model_dump().items() for key, value in keys.items()}

    def dump(self) -> str:
        return yaml.safe_dump(self.model_dump(), sort_keys=False)
