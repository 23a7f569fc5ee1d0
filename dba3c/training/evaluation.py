"""Evaluation: episodes with frozen weights, shared among the ranks; raw scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.actors.single_episodes import MakeEnv, Watch, play, seeds_of
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.envs.starts import Start, decode, encode
from dba3c.run_files import untrusted
from dba3c.seeds import STARTS, draw
from dba3c.types import Policy, Transport

EPISODES = 10  # that start points are taken from
POINTS_OF_AN_EPISODE = 10  # a hundred in all, as Gorila had
MOST_BYTES = 10**8  # of a file of start points


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


def encoded_starts(config: Config, policy: Policy, make_env: Callable[[Config], MakeEnv]) -> bytes:
    """Play some episodes with sampled actions; return points of them as the content of a file for evaluate.starts."""
    changes = {"policy": "sampled", "games": EPISODES, "probe_games": 0, "starts": "none"}
    sampled = config.model_copy(update={"evaluate": config.evaluate.model_copy(update=changes)})
    return encode(config.evaluation_env, start_points(sampled, policy, make_env(sampled)))


def start_points(config: Config, policy: Policy, make_env: MakeEnv) -> list[Start]:
    """Play the configured episodes, and take points at random of each."""
    numbers = np.arange(config.evaluate.games)
    points = []
    for number, episode in enumerate(play(config, policy, make_env, numbers, lambda _: None)):
        seed = int(seeds_of(config, policy, numbers[number : number + 1])[0])
        drawn = draw(config.train.seed, STARTS, number, np.arange(POINTS_OF_AN_EPISODE))
        for length in np.sort(drawn % np.uint64(len(episode.actions))).tolist():
            points.append(Start(seed=seed, actions=tuple(int(action) for action in episode.actions[:length])))
    return points


def read_starts(config: Config) -> tuple[Start, ...]:
    """Read the start points of evaluations; none where episodes start at their beginning."""
    name = config.evaluate.starts
    if name == "none":
        return ()
    try:
        data = untrusted.read(Path(name), MOST_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"evaluate.starts={name}: cannot be read: {why}; write none or a file") from None
    return decode(data, config.evaluation_env, name)


def in_a_row(reached: int, needed: int) -> str:
    """Return the end of a message about an evaluation that reached the target, but must not be the only one."""
    return f"; {reached} of {needed} in a row that reach the target" if reached and needed > 1 else ""


def cut_off(count: int) -> str:
    """Return the end of a message about episodes that had not come to their end; empty if there were none."""
    return f", {count} of them cut off before their end (evaluate.max_frames)" if count else ""
