"""Microseconds per step of each part alone, with every core of the machine busy on the same part at the same time."""

from __future__ import annotations

import itertools
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching
from dba3c.benchmarks.launching import Bar, stage
from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.types import Array, Batch, Json, Spaces

if TYPE_CHECKING:  # the agent needs TensorFlow, which the parent process need not load
    from dba3c.learning.agent import Agent


HELP = "microseconds per step of each part alone, and the steps/s that they allow"
TORSOS = ("nips", "nature", "ba3c")
WORDS = {  # JSON key → the name of this part of a rank's time everywhere else (types.PARTS)
    "emulate": "env",
    "predict": "predict",
    "gradient": "gradient",
    "apply": "apply",
    "all-reduce": "wait",
}


class Work(NamedTuple):
    """One call of a part, and the steps (or updates) that it does."""

    call: Callable[[], object]
    units: int


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 2.0)


def measure(options: Namespace, bar: Bar) -> Json:
    """Measure the parts of each torso, with the simulators and sizes of the preset that uses it."""
    rows = []
    bar.add_task("", total=len(TORSOS))
    for torso in TORSOS:
        with stage(bar, f"parts: {torso}"):
            rows.append(torso_row(torso, options.game, options.seconds))
    return {"machine": launching.machine(), "rows": rows}


def torso_row(torso: str, game: str, seconds: float) -> Json:
    """Measure the parts of a torso, and add up their costs per step."""
    preset, overrides = preset_with(torso), [f"model.torso={torso}"]
    config = loading.load(preset, overrides)
    row = preset_row(preset, game, seconds, overrides)
    costs = microseconds_per_step(row, config.actor.kind, config.actor.n_steps, config.batch_size)
    bound = launching.cores() * 1e6 / sum(costs.values())
    return row | {"microseconds_per_step": costs, "bound_steps_per_second": bound}


def preset_with(torso: str) -> str:
    """Name the first preset that uses a torso; the usual one for a torso that no preset uses."""
    names = (name for name in loading.preset_names() if loading.load(name).model.torso == torso)
    return next(names, benchmarks.PRESET)


def preset_row(preset: str, game: str, seconds: float, overrides: Sequence[str] = ()) -> Json:
    """Measure each part's microseconds, per step or per update, and the rates of its arithmetic.

    `overrides` are keys of the configuration, key=value, that replace the preset's.
    """
    words = [preset, game, str(seconds), *overrides]
    row = launching.result_of(launching.cores(), "dba3c.benchmarks.parts", words)
    return {"torso": loading.load(preset, overrides).model.torso, "game": game} | row


def microseconds_per_step(row: Json, kind: str, n_steps: int, batch_size: int) -> dict[str, float]:
    """Compute what each part costs one rank per step; the steps of a batch share an update."""
    costs: dict[str, float] = row["microseconds"]
    # Lockstep predicts each segment's last observation twice: for the bootstrap, and again with the new weights.
    predictions = 1 + 1 / n_steps if kind == "lockstep" else 1
    return {
        "emulate": costs["emulate"],
        "predict": costs["predict"] * predictions,
        "gradient": costs["gradient"],
        "apply": costs["apply"] / batch_size,
        "all-reduce": costs["all-reduce"] / batch_size,
    }


def table(result: Json) -> Group:
    """Show the costs per step, and below them how near the arithmetic comes to what a core can do."""
    title = f"µs per step on one core of {result['machine']['cores']}, all busy"
    costs_table = Table("torso", *WORDS.values(), "sum", "bound, steps/s", title=title)
    for row in result["rows"]:
        costs = row["microseconds_per_step"]
        cells = [f"{costs[key]:,.0f}" for key in WORDS]
        bound = f"{row['bound_steps_per_second']:,.0f}"
        costs_table.add_row(row["torso"], *cells, f"{sum(costs.values()):,.0f}", bound)
    return Group(costs_table, *map(arithmetic_line, result["rows"]))


def arithmetic_line(row: Json) -> str:
    """Say how near a torso's parts come to what a core can do."""
    peak = row["peak_gflops"]
    rates = [f"{part} {row[f'{part}_gflops'] / peak:.0%}" for part in ("predict", "gradient")]
    return (
        f"{row['torso']}: {row['multiply_adds_forward'] / 1e6:.1f} million multiply-adds per prediction"
        f" ({row['microseconds']['predict']:,.0f} µs); of the {peak:.0f} Gflop/s that a core reaches in a large"
        f" matrix product: {', '.join(rates)}"
    )


def on_rank(world: World, preset: str, game: str, seconds: float, overrides: Sequence[str], file: Path) -> int:
    """Measure all parts on one rank; rank 0 writes the means over the ranks."""
    load_tensorflow(world.threads)
    from dba3c.training import build

    config = loading.load(preset, [f"env.game={game}", *overrides])
    agent = build.agent(config)
    microseconds = {}
    for part, work in works(config, world, agent).items():
        spent = seconds_per_call(work.call, seconds, world)
        microseconds[part] = float(np.mean(world.comm.allgather(spent))) / work.units * 1e6
    peak = peak_gflops(seconds, world)
    if world.rank == 0:
        row = {"microseconds": microseconds, "peak_gflops": peak} | arithmetic(agent.multiply_adds, microseconds)
        file.write_text(json.dumps(row), encoding="utf-8")
    return EXIT_OK


def arithmetic(multiply_adds: list[int], microseconds: dict[str, float]) -> dict[str, float]:
    """Compute the multiply-adds (two operations each) of one prediction, and the rates at which they are done.

    The backward pass repeats each layer's work twice, for its weights and for its input, but the first has no input to
    differentiate.
    """
    forward = sum(multiply_adds)
    return {
        "multiply_adds_forward": forward,
        "predict_gflops": 2e-3 * forward / microseconds["predict"],
        "gradient_gflops": 2e-3 * (3 * forward - multiply_adds[0]) / microseconds["gradient"],
    }


def peak_gflops(seconds: float, world: World) -> float:
    """Measure one core in a large matrix product: the peak that this machine and this library really reach."""
    import tensorflow as tf

    size = 1024
    matrix = tf.random.stateless_uniform((size, size), (1, 2))
    multiply = tf.function(tf.linalg.matmul)
    spent = seconds_per_call(lambda: multiply(matrix, matrix).numpy(), seconds, world)
    return 2e-9 * size**3 / spent / world.threads


def works(config: Config, world: World, agent: Agent) -> dict[str, Work]:
    """Prepare the parts of training as the real trainer calls them."""
    from dba3c import envs
    from dba3c.comm import make_transport
    from dba3c.training import build

    env = envs.make(config.env, config.env.n_sim, world.threads)
    env.reset(np.arange(env.n_sim))
    optimizer = build.optimizer(config, agent)
    transport = make_transport(config.comm.transport, world.comm)
    batch = example_batch(config, Spaces(env.observation_space, env.action_space), agent.memory_size)
    observations = batch.observations.reshape(-1, *env.observation_space.shape)[: env.n_sim]
    random = np.random.default_rng(world.rank)
    noise = random.random((env.n_sim, agent.noise_size), np.float32)
    simulators = np.arange(env.n_sim)
    memory = np.zeros((env.n_sim, agent.memory_size), np.float32)
    actions = itertools.cycle([[env.action_space.sample() for _ in simulators] for _ in range(64)])
    gradient = next(agent.gradients(batch)).mean
    message = np.zeros_like(gradient)  # stays finite however often it is added up
    return {
        "emulate": Work(lambda: env.step(np.array(next(actions), env.action_space.dtype)), env.n_sim),
        "predict": Work(lambda: agent.act(observations, noise, simulators, memory), env.n_sim),
        "gradient": Work(lambda: next(agent.gradients(batch)), batch.samples),
        "apply": Work(lambda: optimizer.apply(gradient, agent.clock), 1),
        "all-reduce": Work(lambda: transport.sum(message), 1),
    }


def seconds_per_call(call: Callable[[], object], seconds: float, world: World) -> float:
    """Take the mean over about `seconds`; all ranks make the same number of calls at the same time."""
    call()  # compiles
    start = time.perf_counter()
    call()
    calls: int = world.comm.bcast(max(5, int(seconds / (time.perf_counter() - start))))
    world.comm.Barrier()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def example_batch(config: Config, spaces: Spaces, memory_size: int = 0) -> Batch:
    """Make a batch of the configured size with random content."""
    transitions = config.actor.kind == "async" and not config.model.memory  # else whole segments
    steps = 1 if transitions else config.actor.n_steps
    segments = config.batch_size // steps
    by_step, by_state = (steps, segments), (steps + 1, segments)
    zeros: Array = np.zeros(by_step, np.float32)
    random = np.random.default_rng(0)
    return Batch(
        observations=random.integers(0, 256, (*by_state, *spaces.observation.shape)).astype(spaces.observation.dtype),
        actions=np.zeros((*by_state, *(spaces.action.shape or ())), spaces.action.dtype),
        log_probabilities=zeros,
        rewards=random.normal(size=by_step).astype(np.float32),
        discounts=zeros,
        past_returns=zeros,
        ended=np.zeros(by_step, bool),
        values=np.zeros(by_state, np.float32),
        versions=np.zeros(by_step, np.int64),
        memory=np.zeros((segments, memory_size), np.float32),
        steps=zeros.size,
        episodes=[],
    )


if __name__ == "__main__":
    PRESET, GAME, SECONDS, *OVERRIDES, FILE = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, PRESET, GAME, float(SECONDS), OVERRIDES, Path(FILE))))
