"""Microseconds per step of each part alone, with every core of the machine busy on the same part at the same time."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dba3c.benchmarks import launching
from dba3c.config import loading
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_OK
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World, run_job
from dba3c.types import Array, Batch

if TYPE_CHECKING:  # the agent needs TensorFlow, which the parent process need not load
    from dba3c.learning.agent import Agent


PRESETS = {"nips": "paac", "nature": "paac", "ba3c": "paper"}  # whose games and sizes a torso is measured with


class Work(NamedTuple):
    """One call of a part, and how many steps (or updates) it does."""

    call: Callable[[], object]
    units: int


def measure(torso: str, game: str, seconds: float, processes: int, sizes: Sequence[str] = ()) -> dict[str, Any]:
    """A row of the table: microseconds of each part, per step or per update, and the rates of its arithmetic.

    `sizes` are keys of the configuration, key=value, that replace the preset's.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.json"
        launching.run(processes, "dba3c.benchmarks.parts", [torso, game, str(seconds), str(file), *sizes])
        row: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {"torso": torso, "game": game} | row


def microseconds_per_step(row: dict[str, Any], kind: str, n_steps: int, batch_size: int) -> dict[str, float]:
    """What each part costs one rank per step in a layout; updates are shared by the steps of a batch."""
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


def on_rank(world: World, torso: str, game: str, seconds: float, file: Path, sizes: Sequence[str]) -> int:
    """One rank's measurement of all parts; rank 0 writes the means over the ranks."""
    load_tensorflow(world.threads)
    from dba3c.training import build

    config = loading.load(PRESETS[torso], [f"env.game={game}", f"model.torso={torso}", *sizes])
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
    """Multiply-adds (two operations each) of one prediction, and the rates at which they are done.

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
    """What one core reaches in a large matrix product: the honest peak of this machine and this library."""
    import tensorflow as tf

    size = 1024
    matrix = tf.random.stateless_uniform((size, size), (1, 2))
    multiply = tf.function(tf.linalg.matmul)
    spent = seconds_per_call(lambda: multiply(matrix, matrix).numpy(), seconds, world)
    return 2e-9 * size**3 / spent / world.threads


def works(config: Config, world: World, agent: Agent) -> dict[str, Work]:
    """The parts of training as the real trainer calls them."""
    from dba3c import envs
    from dba3c.training import build

    env = envs.make(config.env, config.env.n_sim, world.threads)
    env.reset(np.arange(env.n_sim))
    optimizer, transport = build.optimizer(config, agent), build.transport(config, world.comm)
    batch = example_batch(config, env.observation_shape, env.n_actions)
    observations = batch.observations.reshape(-1, *env.observation_shape)[: env.n_sim]
    random = np.random.default_rng(world.rank)
    noise = random.random(env.n_sim, np.float32)
    actions = itertools.cycle(random.integers(0, env.n_actions, (64, env.n_sim), np.int32))
    gradient = next(agent.gradients(batch)).mean
    message = np.zeros_like(gradient)  # stays finite however often it is added up
    return {
        "emulate": Work(lambda: env.step(next(actions)), env.n_sim),
        "predict": Work(lambda: agent.act(observations, noise), env.n_sim),
        "gradient": Work(lambda: next(agent.gradients(batch)), batch.samples),
        "apply": Work(lambda: optimizer.apply(gradient, 0.0), 1),
        "all-reduce": Work(lambda: transport.sum(message), 1),
    }


def seconds_per_call(call: Callable[[], object], seconds: float, world: World) -> float:
    """The mean over about `seconds`; all ranks make the same number of calls at the same time."""
    call()  # compiles
    start = time.perf_counter()
    call()
    calls: int = world.comm.bcast(max(5, int(seconds / (time.perf_counter() - start))))
    world.comm.Barrier()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def example_batch(config: Config, shape: tuple[int, int, int], n_actions: int) -> Batch:
    """A batch of the configured size with random content."""
    random = np.random.default_rng(0)
    size = (1, config.batch_size) if config.actor.kind == "async" else (config.actor.n_steps, config.env.n_sim)
    zeros: Array = np.zeros(size, np.float32)
    return Batch(
        observations=random.integers(0, 256, (*size, *shape), np.uint8),
        actions=random.integers(0, n_actions, size, np.int32),
        log_probabilities=zeros,
        rewards=random.normal(size=size).astype(np.float32),
        discounts=zeros,
        values=np.zeros((size[0] + 1, size[1]), np.float32),
        versions=np.zeros(size, np.int64),
        episodes=[],
    )


if __name__ == "__main__":
    TORSO, GAME, SECONDS, FILE, *SIZES = sys.argv[1:]
    sys.exit(run_job(lambda world: on_rank(world, TORSO, GAME, float(SECONDS), Path(FILE), SIZES)))
