"""The film of an agent's episodes: play them as evaluation does, show them frame by frame, write the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dba3c.actors import single_episodes
from dba3c.actors.single_episodes import MakeEnv, PlayedEpisode, Watch, seeds_of
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.film.emulator_frames import frames_of
from dba3c.film.encoders import write_gif, write_mp4
from dba3c.film.panel import FRAMES_PER_SECOND, HISTORY_STEPS, Shot
from dba3c.types import Policy


class Take(NamedTuple):
    """One episode, and its number among those of the evaluation."""

    number: int
    episode: PlayedEpisode

    @property
    def name(self) -> str:
        return f"episode {self.number + 1}"


def play(config: Config, agent: Policy, make_env: MakeEnv, watch: Watch) -> list[Take]:
    """Play the episodes that evaluation plays, in the same order."""
    episodes = single_episodes.play(config, agent, make_env, np.arange(config.evaluate.games), watch)
    return [Take(number, episode) for number, episode in enumerate(episodes)]


def shoot(config: Config, agent: Policy, make_env: MakeEnv, take: Take, advance: Callable[[], None]) -> Iterator[Shot]:
    """Repeat an episode and yield its frames with score and values; RuntimeError if its score differs."""
    seed = seeds_of(config, agent, np.array([take.number]))  # [1]
    actions = take.episode.actions
    game = config.env.game.replace("_", " ")
    memory = np.zeros((1, agent.memory_size), np.float32)
    noise = np.zeros((1, agent.noise_size), np.float32)
    score = 0.0
    values: list[float] = []
    with closing(make_env(1)) as env:  # shows the agent what it saw; its frames are too few and too small for a film
        observations = env.reset(seed)
        for step, frames in enumerate(frames_of(config.evaluation_env, int(seed[0]), actions)):
            prediction = agent.act(observations, noise, np.zeros(1, np.int64), memory)
            memory = prediction.memory
            values.append(float(prediction.values[0]))
            newest = values[-HISTORY_STEPS:]
            for frame in frames:
                score += frame.reward
                yield Shot(frame.picture, game, take.name, score, step + 1, newest)
            observations = env.step(np.stack(actions[step : step + 1])).observations
            advance()
    if score != take.episode.score:
        raise RuntimeError(
            f"the emulator did not repeat {take.name}: score {score:g} instead of {take.episode.score:g}"
        )


def write(file: Path, shots: Iterator[Shot], start: float, seconds: float | None) -> None:
    """Write `seconds` of the film from `start` on (None: the rest of it), as a whole file or not at all."""
    first = round(start * FRAMES_PER_SECOND)
    last = None if seconds is None else first + max(1, round(seconds * FRAMES_PER_SECOND))
    encode = write_gif if file.suffix == ".gif" else write_mp4
    temporary = file.with_name(f".{file.name}.part{file.suffix}")
    try:
        encode(temporary, islice(shots, first, last))
        if not temporary.exists():
            raise ConfigError(f"--start={start:g}: the film ends before that; choose an earlier start")
        temporary.replace(file)
    except OSError as error:
        raise ConfigError(f"--out={file}: cannot be written: {error}; choose another file") from None
    finally:
        temporary.unlink(missing_ok=True)
