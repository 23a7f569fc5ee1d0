"""The seams: what crosses from part to part. T = steps, B = simulators, P = parameters, M = size of the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import tensorflow as tf
    from gymnasium.spaces import Box, Discrete
    from mpi4py import MPI

T = TypeVar("T")
Array = NDArray[Any]
Json = dict[str, Any]  # what json.loads gives
Stop = Callable[[], bool]  # whether this rank was asked to stop
Say = Callable[[str], None]  # takes a message for the user

NOTHING: Array = np.empty(0, np.float32)


class Spaces(NamedTuple):
    """What one simulator shows and takes."""

    observation: Box
    action: Box | Discrete


class Episode(NamedTuple):
    """One finished play of a game."""

    score: float  # sum of raw rewards
    steps: int


class Step(NamedTuple):
    """Answer of n simulators to n actions."""

    observations: Array  # [n, …]; where an episode ended, the first of the next
    rewards: Array  # [n] raw
    ended: Array  # [n] bool: the episode is over
    terminal: Array  # [n] bool: nothing may be bootstrapped beyond this step
    final_observations: Array = NOTHING  # [k, …] last ones of the k episodes that ended, but not in a terminal state
    cut: Array = NOTHING  # [n] bool: a length limit ended the episode; empty if the environment does not say
    rebuilt: bool = False  # the simulators failed and were replaced; these are the first observations of new episodes


class VectorEnv(Protocol):
    """n simulators that step together and restart by themselves."""

    n_sim: int
    observation_space: Box  # of one simulator
    action_space: Box | Discrete

    def reset(self, seeds: Array) -> Array: ...  # -> [n, …]
    def step(self, actions: Array) -> Step: ...
    def close(self) -> None: ...


class Prediction(NamedTuple):
    """What the network says about observations, and the actions drawn from it."""

    actions: Array  # [B, …]
    log_probabilities: Array  # [B] of the actions taken
    values: Array  # [B]
    memory: Array  # [B, M] after this step


class Policy(Protocol):
    """Acts for any number of simulators."""

    memory_size: int  # M; 0 where nothing is remembered
    noise_size: int  # k random numbers per action

    @property
    def version(self) -> int: ...  # number of the update that made its weights
    @property
    def reward_scale(self) -> float: ...  # by which rewards are multiplied for learning
    def act(
        self, observations: Array, noise: Array, simulators: Array, memory: Array
    ) -> Prediction: ...  # noise [B, k]
    def greedy(self, observations: Array, memory: Array) -> tuple[Array, Array]: ...  # -> actions, memory


class Batch(NamedTuple):
    """Segments of play. Termination is folded into the discounts."""

    observations: Array  # [T + 1, B, …]; row T: the state after the segment
    actions: Array  # [T + 1, B, …]; row T: chosen in that state
    log_probabilities: Array  # [T, B] when acting
    rewards: Array  # [T, B] clipped; where an episode was truncated, with the value of its final observation
    discounts: Array  # [T, B] gamma, or 0 where nothing is bootstrapped beyond this step
    past_returns: Array  # [T, B] discounted sums of the raw rewards of the episode up to this step
    ended: Array  # [T, B] bool: the episode was over after this step, and what was remembered of it is forgotten
    values: Array  # [T + 1, B] when acting; row T: the bootstrap
    versions: Array  # [T, B] int64, number of the update whose weights acted
    memory: Array  # [B, M] at the start of the segment
    steps: int  # of new play; 0 for what comes out of a replay memory
    episodes: list[Episode]  # that ended while this batch was played

    @property
    def samples(self) -> int:
        return int(self.rewards.size)


BY_TIME = tuple(name for name in Batch._fields if name not in ("memory", "steps", "episodes"))  # [T or T + 1, B, …]


class Gradient(NamedTuple):
    """What one rank brings to an update."""

    mean: Array  # [P] gradient of the mean loss over this rank's samples
    samples: int  # 0: the rank has played, but there is nothing to learn from
    steps: int  # of play that these samples are the first to learn from
    version: int  # number of the update whose weights it was computed with
    sums: dict[str, float]  # figures that are added up over the ranks; the same names on each
    by_rank: dict[str, float]  # figures that are kept apart, rank by rank
    moments: Array = NOTHING  # is added up over the ranks, too: statistics of what was seen; always of one length


class Update(NamedTuple):
    """What one update did, the same on every rank."""

    number: int
    samples: int  # of all ranks
    steps: int  # of play that were learned from for the first time
    skipped: bool  # a gradient was not finite: the weights were left as they are
    stop: bool  # some rank was asked to stop
    sums: dict[str, float]
    by_rank: dict[str, Array]  # [ranks] each
    moments: Array = NOTHING

    @property
    def applied(self) -> bool:
        """Whether the weights have changed."""
        return not self.skipped and self.samples > 0


class Clock(NamedTuple):
    """How far the training is: what schedules are functions of."""

    updates: int
    steps: int
    total_steps: int

    @property
    def done(self) -> float:
        """From 0 to 1."""
        return self.steps / self.total_steps


class Head(NamedTuple):
    """One output of the network."""

    size: int
    gain: float = 1.0  # of its first weights, where the torso lets the head choose


Acted = tuple["tf.Tensor", "tf.Tensor", "tf.Tensor"]  # actions, their log-probabilities, values
Outputs = Mapping[str, "tf.Tensor"]  # by the names of the heads, [B, size] each
Columns = dict[str, Array]  # what the loss needs of each sample, [T, B, …] each
Evaluate = Callable[["tf.Variable", Array], dict[str, Array]]  # weights, observations [N, …] → the network's outputs


class Algorithm(Protocol):
    """How to act, and what to minimise. It owns its schedules and its state."""

    heads: dict[str, Head]  # what the network must put out
    noise_size: int  # random numbers per action

    def begin(self, weights: tf.Variable) -> None: ...  # these were just drawn or loaded; restore() may follow
    def exploration(self, simulators: Array, clock: Clock) -> Array: ...  # [B, e]; e = 0 where only the policy explores

    def act(self, outputs: Outputs, noise: tf.Tensor, exploration: tf.Tensor) -> Acted: ...
    def greedy(self, outputs: Outputs) -> tf.Tensor: ...  # actions

    def columns(self, batch: Batch, clock: Clock, evaluate: Evaluate) -> Columns: ...
    def minibatches(
        self, count: int, seed: int, update: int, whole: bool = False
    ) -> Iterator[Array | slice]: ...  # time steps of each; simulators, where only whole sequences can be learned from
    def loss(self, outputs: Outputs, **columns: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]: ...  # and figures

    def follow(self, update: Update, clock: Clock, weights: tf.Variable) -> None: ...  # after every update
    def state(self) -> dict[str, Array]: ...  # saved with the checkpoint
    def restore(self, state: dict[str, Array]) -> None: ...


class Actor(Iterator["Batch | None"], Protocol):
    """Plays and yields batches, each valid until the next one is asked for; None if new weights came in between."""

    def restart(self, update: int) -> None: ...  # new episodes, drawn from the seed and this number
    def close(self) -> None: ...


class Optimizer(Protocol):
    """Turns the averaged gradient into new weights, in place."""

    size: int  # of the weights
    shared: bool  # where ranks share the weights: whether they share the slots, too

    def apply(self, gradient: Array, clock: Clock, scale: float | None = None) -> None: ...  # or clips
    def scale(self, gradient: Array) -> float: ...  # by which `apply` would clip it
    def apply_to(
        self, weights: Array, slots: dict[str, Array], gradient: Array, clock: Clock, steps: int, scale: float
    ) -> None: ...  # in place
    def part(self, where: slice) -> Optimizer: ...  # for some of the weights, with its own copy of them
    def weights(self) -> Array: ...  # a copy
    def load(self, weights: Array) -> None: ...
    def state(self) -> dict[str, Array]: ...
    def restore(self, state: dict[str, Array]) -> None: ...


class Transport(Protocol):
    """Moves data between the ranks."""

    comm: MPI.Intracomm
    rank: int
    size: int

    def sum(self, array: Array) -> None: ...  # in place, over all ranks
    def broadcast(self, value: T, root: int = 0) -> T: ...  # the value of that rank
    def gather(self, value: T) -> list[T]: ...  # all ranks' values, on every rank
    def send(self, rank: int, note: object, tag: int = 0) -> None: ...  # does not wait for its arrival
    def receive(self, tag: int = 0) -> tuple[int, Any] | None: ...  # sender and note, if one has arrived
    def send_array(self, rank: int, array: Array, tag: int) -> None: ...  # it must stay as it is until it has arrived
    def receive_array(self, rank: int, array: Array, tag: int) -> Stop: ...  # -> whether it has arrived, to be asked
    def duplicate(self) -> Self: ...  # the same ranks, but messages of its own: for another thread
    def shrink(self) -> Self: ...  # the surviving ranks, in their old order; all of them must ask


class Strategy(Protocol):
    """Turns the ranks' gradients into updates and applies them."""

    equal_weights: bool  # after every update, or only where the ranks meet

    def update(self, gradient: Gradient | None, stop: Stop) -> list[Update]: ...  # those since the last call
    def close(self) -> None: ...
