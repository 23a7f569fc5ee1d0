"""Films: the episodes are evaluation's, the frames are the emulator's, and the files can be played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from dba3c import record
from dba3c.actors import greedy
from dba3c.config.schema import Config
from dba3c.film import shots
from dba3c.film.emulator_frames import frames_of
from dba3c.film.encoders import GAME_COLOURS, few_colours, write_gif, write_mp4
from dba3c.film.panel import PANEL_WIDTH, Shot
from dba3c.learning.agent import Agent
from dba3c.seeds import EVALUATION, game_seeds
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from tests.fakes.agents import UPDATES, saved, small
from tests.fakes.loopback import Loopback

GAMES = 5  # in two groups


def first_agent(config: Config) -> Agent:
    agent = build.agent(config)
    agent.load(agent.weights.numpy(), UPDATES)
    return agent


def configured(profile: str, *overrides: str) -> Config:
    return small(f"env.profile={profile}", f"evaluate.games={GAMES}", "train.target_score=none", *overrides)


@pytest.mark.parametrize("profile", ["deepmind", "paper"])
def test_filmed_episodes_have_the_scores_of_evaluation(profile: str) -> None:
    config = configured(profile, "evaluate.probe_games=0", "train.seed=3")
    agent, make_env = first_agent(config), build.evaluation_env(config, threads=1)
    takes = shots.play(config, agent, make_env, lambda _: None)
    scores = evaluate(config, agent, make_env, Loopback()).scores
    assert [take.episode.score for take in takes] == scores
    assert len(set(scores)) > 1
    best = max(takes, key=lambda take: take.episode.score)
    filmed = list(shots.shoot(config, agent, make_env, best, lambda: None))
    assert filmed[-1].score == best.episode.score > 0
    assert filmed[-1].step == len(best.episode.actions)


@pytest.mark.parametrize("game", ["breakout", "seaquest"])
def test_deepmind_frames_are_those_that_the_agent_saw(game: str) -> None:
    """In colour, every frame; gray and small they are the agent's, up to how gray is made of colours."""
    config = configured("deepmind", f"env.game={game}", "evaluate.max_frames=27000")
    for simulator, seed in enumerate(game_seeds(1, EVALUATION, 0, np.arange(3))):
        draw = np.random.default_rng(simulator)
        env = build.evaluation_env(config, threads=1)(1)
        env.reset(np.array([seed]))
        actions = draw.integers(env.n_actions, size=150).tolist()
        for number, frames in enumerate(frames_of(config.env, int(seed), actions)):
            step = env.step(np.array([actions[number]], np.int32))
            assert sum(frame.reward for frame in frames) == step.rewards[0]
            if step.ended[0]:
                break
            assert len(frames) == 4
            gray = [cv2.cvtColor(frame.picture, cv2.COLOR_RGB2GRAY) for frame in frames[-2:]]
            seen = cv2.resize(np.maximum(*gray), (84, 84), interpolation=cv2.INTER_AREA)
            assert np.abs(seen.astype(int) - step.observations[0, -1]).max() <= 3


def test_paper_frames_are_those_that_the_agent_saw() -> None:
    config = configured("paper", "env.game=breakout", "evaluate.max_frames=27000")
    draw, lengths = np.random.default_rng(0), set()
    env = build.evaluation_env(config, threads=1)(1)
    env.reset(np.array([11]))
    actions = draw.integers(env.n_actions, size=400).tolist()
    for number, frames in enumerate(frames_of(config.env, 11, actions)):
        step = env.step(np.array([actions[number]], np.int32))
        assert sum(frame.reward for frame in frames) == step.rewards[0]
        if step.ended[0]:
            break
        lengths.add(len(frames))
        small_picture = cv2.resize(frames[-1].picture, (84, 84)).transpose(2, 0, 1)
        np.testing.assert_array_equal(small_picture, step.observations[0, -3:])
    assert lengths == {2, 3, 4}


def test_a_stuck_game_is_filmed_until_evaluation_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of zeros does nothing, so that Breakout waits for the next ball for ever."""
    monkeypatch.setattr(greedy, "STUCK_STEPS", 20)
    config = configured("deepmind", "env.game=breakout", "evaluate.games=1", "evaluate.max_frames=27000")
    agent, make_env = first_agent(config), build.evaluation_env(config, threads=1)
    agent.load(np.zeros_like(agent.weights.numpy()), UPDATES)
    (take,) = shots.play(config, agent, make_env, lambda _: None)
    assert 20 < len(take.episode.actions) < 200
    pictures = [shot.picture for shot in shots.shoot(config, agent, make_env, take, lambda: None)]
    assert len(pictures) == 4 * len(take.episode.actions)
    assert (pictures[-1] == pictures[-40]).all()
    other = take._replace(episode=take.episode._replace(score=9.0))
    with pytest.raises(RuntimeError, match="did not repeat episode 1: score 0 instead of 9"):
        list(shots.shoot(config, agent, make_env, other, lambda: None))


def made_up(count: int, colours: int = 6, height: int = 21) -> list[Shot]:
    draw = np.random.default_rng(0)
    palette = draw.integers(256, size=(colours, 3)).astype(np.uint8)
    pictures = palette[draw.integers(colours, size=(count, height, 16))]
    return [
        Shot(picture, "a game", "episode 1", float(n // 8), n // 4, [0.1 * n]) for n, picture in enumerate(pictures)
    ]


def test_an_mp4_has_every_frame_at_normal_speed(tmp_path: Path) -> None:
    file = tmp_path / "film.mp4"
    write_mp4(file, iter(made_up(90)))
    reader = imageio_ffmpeg.read_frames(str(file))
    facts = next(reader)
    assert (facts["codec"], facts["fps"], facts["pix_fmt"][:7]) == ("h264", 60.0, "yuv420p")
    assert facts["size"] == (3 * (16 + PANEL_WIDTH), 64)  # 63 rows are one too few for H.264
    assert sum(1 for _ in reader) == 90


def test_a_gif_has_half_the_frames_in_the_true_colours(tmp_path: Path) -> None:
    file, played = tmp_path / "film.gif", made_up(61, height=105)
    write_gif(file, iter(played))
    images = list(images_of(file))
    assert sum(delay for _, delay in images) == pytest.approx(61 / 60 * 1000, abs=40)
    shown = images[5][0][::2, : 2 * 16 : 2]
    np.testing.assert_array_equal(shown, np.maximum(played[10].picture, played[11].picture))
    assert len({picture[:, 32:].tobytes() for picture, _ in images}) >= 7  # the panel changes with the score


def images_of(file: Path) -> Iterator[tuple[Any, float]]:
    with Image.open(file) as image:
        for number in range(image.n_frames):
            image.seek(number)
            yield np.asarray(image.convert("RGB")), image.info["duration"]


def test_too_many_colours_become_near_ones() -> None:
    pictures = np.stack([shot.picture for shot in made_up(20, colours=500)])
    colours, indices = few_colours(pictures)
    assert len(colours) <= GAME_COLOURS
    assert np.abs(colours[indices].astype(int) - pictures).mean() < 12


def test_the_command_films_the_best_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(f"evaluate.games={GAMES}", "train.target_score=none", "evaluate.probe_games=0")
    run_dir, file = saved(tmp_path / "run", config), tmp_path / "best.mp4"
    scores = evaluate(config, first_agent(config), build.evaluation_env(config, 1), Loopback()).scores
    words = [str(run_dir), "--best", f"--games={GAMES}", "--seconds=1", f"--out={file}"]
    assert record.main(words) == 0
    assert f"with score {max(scores):g}\n" in capsys.readouterr().out
    assert imageio_ffmpeg.count_frames_and_secs(str(file))[0] == 60
    assert record.main([*words, "--start=500"]) == 2
    assert "choose an earlier start" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.mp4", "run"]  # nothing half-written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out=avi", "nowhere"], "films are .mp4 or .gif"),
        (["--out=no/such/film.gif", "nowhere"], "there is no folder no/such"),
        (["nowhere"], "nowhere: holds no checkpoint"),
        (["nowhere", "--games=0"], "--games=0"),
        (["nowhere", "--seconds=-1"], "--seconds=-1"),
        ([], "either a run directory or --pretrained"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("dba3c: ")
    assert error.count("\n") == 1
    assert message in error
