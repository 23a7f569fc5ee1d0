"""Evaluation: episodes with frozen weights, shared among the ranks; raw scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dba3c.actors.single_episodes import MakeEnv, Watch, play
from dba3c.config.schema import Config
from dba3c.types import Policy, Transport


class Evaluation(NamedTuple):
    """Scores of the games in the order of their numbers; `full` if all configured games were played."""

    scores: list[float]
    full: bool
    cut: int = 0  # episodes that had not come to their end

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))


def evaluate(
    config: Config, policy: Policy, make_env: MakeEnv, transport: Transport, watch: Watch = lambda _: None
) -> Evaluation:
    """The probe games and, if they reach the target (or none is set), the rest; the same result on every rank."""
    games, target = config.evaluate.games, config.target_score
    probe = min(config.evaluate.probe_games or games, games)
    played = share_games(config, policy, make_env, transport, range(probe), watch)
    if probe < games and (target is None or np.mean([score for score, _ in played]) >= target):
        played += share_games(config, policy, make_env, transport, range(probe, games), watch)
    return Evaluation([score for score, _ in played], len(played) == games, sum(cut for _, cut in played))


def share_games(
    config: Config, policy: Policy, make_env: MakeEnv, transport: Transport, games: range, watch: Watch
) -> list[tuple[float, bool]]:
    """Play `games`, each on one of the ranks; return their scores, and which were cut."""
    mine = np.array(games[transport.rank :: transport.size], np.int64)
    played = play(config, policy, make_env, mine, watch)
    results = {number: (game.score, game.cut) for number, game in zip(mine.tolist(), played, strict=True)}
    every = {number: result for part in transport.gather(results) for number, result in part.items()}
    return [every[number] for number in games]


def in_a_row(reached: int, needed: int) -> str:
    """Return the end of a message about an evaluation that reached the target, but must not be the only one."""
    return f"; {reached} of {needed} in a row that reach the target" if reached and needed > 1 else ""


def cut_off(count: int) -> str:
    """Return the end of a message about episodes that had not come to their end; empty if there were none."""
    return f", {count} of them cut off before their end (evaluate.max_frames)" if count else ""
