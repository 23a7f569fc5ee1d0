"""The Python API: load, make_env, train, read_run, register. TensorFlow and MPI are loaded when they are needed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dba3c.config import auto, loading, plugins
from dba3c.config.comparison import shown
from dba3c.config.messages import ConfigError
from dba3c.config.names import Key, register
from dba3c.job import cores, process
from dba3c.job.exit import EXIT_ERROR, EXIT_OK, EXIT_STOPPED
from dba3c.job.world import World, run_job
from dba3c.run_files import logs, trained_agents
from dba3c.run_files.logs import RunLog
from dba3c.run_files.progress import Callback
from dba3c.training import order
from dba3c.types import Array, Spaces, VectorEnv

if TYPE_CHECKING:
    from dba3c.config.schema import Config
    from dba3c.learning.agent import Agent

__all__ = [
    "Callback", "ConfigError", "Key", "TrainedAgent", "TrainingError", "load", "make_env", "read_run", "register",
    "train",
]  # fmt: skip
ENDS_WELL = (EXIT_OK, EXIT_STOPPED)


class TrainingError(Exception):
    """A training that came to no good end; its exit code says why, as README.md lists them."""


def threads() -> int:
    """How many threads this process may keep busy."""
    return cores.threads_for(cores.core_shares([cores.place("")])[0])


def load(agent: str | Path, best: bool = False) -> TrainedAgent:
    """Load an agent: of a run directory, of a file, or the one that comes with dba3c for a game.

    `best` asks for the weights of a run that have played best, not the newest. ConfigError if there is no such agent.
    """
    from dba3c.envs import resolve_title, spaces

    plugins.load()
    saved = trained_agents.named(str(agent), resolve_title, "agent", best)
    process.load_tensorflow(threads())
    from dba3c.training import build

    return TrainedAgent(build.trained(saved), spaces(saved.config.env), saved.config)


class TrainedAgent:
    """Acts on one observation or on a batch of them, as numpy arrays."""

    def __init__(self, agent: Agent, spaces: Spaces, config: Config) -> None:
        self.config = config
        self.observation_space = spaces.observation
        self.action_space = spaces.action
        self._agent = agent
        self._random = np.random.default_rng(config.train.seed)

    def predict(
        self,
        observation: Any,
        state: Array | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Array, Array | None]:
        """Return actions and, if the agent has a memory, the state to pass to the next call.

        As in stable-baselines3: the first call has no state, and `episode_start` is true where an episode begins.
        """
        observations, single = self._batch(observation)
        memory = self._memory(len(observations), state, episode_start)
        if deterministic:
            actions, after = self._agent.greedy(observations, memory)
        else:
            noise = self._random.random((len(observations), self._agent.noise_size), np.float32)
            actions, _, _, after = self._agent.act(observations, noise, np.arange(len(observations)), memory)
        return actions[0] if single else actions, after if self._agent.memory_size else None

    def greedy(self, observation: Any) -> Array:
        """Return the best actions; of an agent without a memory."""
        self._refuse_memory("greedy")
        return self.predict(observation)[0]

    def act(self, observation: Any) -> Array:
        """Return actions drawn from the policy; of an agent without a memory."""
        self._refuse_memory("act")
        return self.predict(observation, deterministic=False)[0]

    def value(self, observation: Any, state: Array | None = None) -> Array:
        """Return what the agent expects to score from here on: discounted, with clipped rewards."""
        observations, single = self._batch(observation)
        noise = np.zeros((len(observations), self._agent.noise_size), np.float32)
        memory = self._memory(len(observations), state, None)
        values = self._agent.act(observations, noise, np.arange(len(observations)), memory).values
        return values[0] if single else values

    def make_env(self, n_sim: int = 1) -> VectorEnv:
        """Make simulators of the agent's own game and preprocessing, as evaluations use them."""
        from dba3c.training import build

        return build.evaluation_env(self.config, threads())(n_sim)

    def keras_model(self) -> Any:
        """Return the network as a Keras model of Keras's own layers: observations in, policy and value out."""
        from dba3c.training import build

        return build.portable(self._agent, self.config)

    def _memory(self, count: int, state: Array | None, episode_start: Any) -> Array:
        shape = (count, self._agent.memory_size)
        memory = np.zeros(shape, np.float32) if state is None else np.array(state, np.float32)
        if memory.shape != shape:
            raise ValueError(f"state has shape {memory.shape}, not {shape}; pass what the last call returned")
        if episode_start is not None:
            memory[np.broadcast_to(episode_start, count)] = 0.0
        return memory

    def _refuse_memory(self, name: str) -> None:
        if self._agent.memory_size:
            raise ValueError(f"{name}: this agent has a memory; use predict, which carries its state")

    def _batch(self, observation: Any) -> tuple[Array, bool]:
        """Return observations as the network takes them, [B, …], and whether there was only one."""
        array, shape = np.asarray(observation), self.observation_space.shape
        if not np.can_cast(array.dtype, self.observation_space.dtype, "same_kind"):
            raise ValueError(f"observation has dtype {array.dtype}; the agent takes {self.observation_space.dtype}")
        given = array
        for arranged in (given, channels_first(given), given[..., 0] if given.shape[-1:] == (1,) else given):
            if arranged.shape in (shape, (*arranged.shape[:1], *shape)):
                single = arranged.shape == shape
                batch = arranged[np.newaxis] if single else arranged
                return np.ascontiguousarray(batch, self.observation_space.dtype), single
        raise ValueError(f"observation has shape {given.shape}; the agent takes {shape}, or a batch of these")


def channels_first(array: Array) -> Array:
    """Turn pictures with their channels last, [H, W, C] or [B, H, W, C], around."""
    return np.moveaxis(array, -1, -3) if array.ndim in (3, 4) else array


def make_env(game: str = "breakout", n_sim: int = 1, **settings: Any) -> VectorEnv:
    """Make simulators of a game as training plays them; `settings` are keys of the section env."""
    from dba3c import envs

    plugins.load([game.rpartition(":")[0]] if ":" in game else [])  # package:Name-v0
    words = [f"env.{key}={shown(value)}" for key, value in settings.items()]
    profile = str(settings.get("profile") or envs.profile_of(game))
    preset = auto.few_ranks("", 1, profile).preset
    words.append(f"env.game={envs.resolve_title(profile, game, 'game')}")
    return envs.make(loading.load(preset, words).env, n_sim, threads())


def read_run(run_dir: str | Path) -> RunLog:
    """Read the logs of a run: its configuration, the columns of metrics.csv and its summary."""
    plugins.load()
    return logs.read([Path(run_dir)])[0]


def train(
    preset: str = "auto",
    game: str | None = None,
    run_dir: str | Path | None = None,
    callback: Callback | None = None,
    *,
    init: str | Path | None = None,
    plugin: str | Iterable[str] = (),
    **settings: Mapping[str, object],
) -> RunLog:
    """Train in this process, as one of the ranks if mpirun or srun started it; return the logs of the run.

    `settings` are sections with their keys, train={"total_steps": 10_000}. `callback` gets the progress and the loss's
    figures after every update; the training ends, and can be resumed, when it returns False.
    """
    words = ["--preset", preset]
    named = {"game": game, "run-dir": run_dir, "init": init}
    words += [f"--{name}={value}" for name, value in named.items() if value is not None]
    words += [f"--plugin={name}" for name in ([plugin] if isinstance(plugin, str) else plugin)]
    words += [f"--{name}.{key}={shown(value)}" for name, keys in settings.items() for key, value in keys.items()]
    return run(words, callback)


def run(words: list[str], callback: Callback | None) -> RunLog:
    """Run the command dba3c train in this process, and give it back as it was."""
    command = import_module("dba3c.train")
    ended: list[RunLog | BaseException] = []

    def body(world: World) -> int:
        try:
            code = int(command.train(world, words, callback))
            run_dir = order.request(command.parser(), words).run_dir
            ended.append(world.comm.bcast(read_run(run_dir) if world.rank == 0 and code in ENDS_WELL else None))
            return code
        except (Exception, SystemExit) as error:
            if world.size > 1:  # one message and the end of all ranks, as from the command line
                raise
            ended.append(error.__cause__ or error)
            return EXIT_ERROR

    code = run_job(body, watched=True)
    signal.alarm(0)  # set for the end of a job, which this process may outlive
    process.OUTLETS.clear()
    threading.excepthook = threading.__excepthook__
    result = ended[0]
    if isinstance(result, BaseException):
        raise result
    if code not in ENDS_WELL:
        raise TrainingError(f"the training ended with exit code {code}; its log.txt says why")
    return result


class CallableModule(ModuleType):
    """The module dba3c.train: a command that can be run, and a function of the API that can be called."""

    __call__ = staticmethod(train)
