"""Greedy games with frozen weights, shared among the ranks; raw scores.  python -m dba3c.evaluate RUN_DIR"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dba3c.sections import Config
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.types import Array, Policy, Transport, VectorEnv

GROUP = 4  # games that step together; a group leaves when its last game is over, so small groups waste few steps
STUCK_STEPS = 250  # unchanged pictures (17 s of play) after which a greedy player would repeat itself for ever

MakeEnv = Callable[[int], VectorEnv]


class Evaluation(NamedTuple):
    """Scores of the games in the order of their numbers; `full` if all configured games were played."""

    scores: list[float]
    full: bool

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))


class GreedyGames:
    """A few games side by side, each played once from its own seed."""

    def __init__(self, env: VectorEnv, seeds: Array) -> None:
        self._env = env
        self.observations = env.reset(seeds)
        self.scores = np.zeros(env.n_sim)
        self._running = np.ones(env.n_sim, bool)
        self._unchanged = np.zeros(env.n_sim, np.int64)

    def step(self, actions: Array) -> bool:
        """Whether a game is still running after this step."""
        step = self._env.step(actions)
        self.scores += step.rewards * self._running
        same = (step.observations == self.observations).all(axis=(1, 2, 3))
        self._unchanged = np.where(same, self._unchanged + 1, 0)
        self._running &= ~step.ended & (self._unchanged < STUCK_STEPS)
        self.observations = step.observations
        return bool(self._running.any())


def play(policy: Policy, make_env: MakeEnv, seeds: Array) -> list[float]:
    """One greedy game per seed; all predictions of a step go through the network together."""
    groups = [
        GreedyGames(make_env(len(part)), part) for part in np.array_split(seeds, -(-len(seeds) // GROUP)) if len(part)
    ]
    running = list(groups)
    while running:
        actions = policy.greedy(np.concatenate([group.observations for group in running]))
        ends = np.cumsum([len(group.scores) for group in running])[:-1]
        parts = zip(running, np.split(actions, ends), strict=True)
        running = [group for group, chosen in parts if group.step(chosen)]
    return [float(score) for group in groups for score in group.scores]


def evaluate(config: Config, policy: Policy, make_env: MakeEnv, transport: Transport) -> Evaluation:
    """The probe games and, if they reach the target (or none is set), the rest; the same result on every rank."""
    games, probe, target = config.evaluate.games, config.evaluate.probe_games, config.target_score
    scores = share_games(config, policy, make_env, transport, range(probe))
    if probe < games and (target is None or np.mean(scores) >= target):
        scores += share_games(config, policy, make_env, transport, range(probe, games))
    return Evaluation(scores, len(scores) == games)


def share_games(config: Config, policy: Policy, make_env: MakeEnv, transport: Transport, games: range) -> list[float]:
    """Play `games`, each on one of the ranks."""
    mine = np.array(games[transport.rank :: transport.size], np.int64)
    seeds = game_seeds(config.train.seed, EVALUATION, policy.version, mine)
    scores = dict(zip(mine.tolist(), play(policy, make_env, seeds) if len(mine) else [], strict=True))
    every = {number: score for part in transport.gather(scores) for number, score in part.items()}
    return [every[number] for number in games]
