"""Films: the games are evaluation's, the frames are the emulator's, and the files can be played."""

from __future__ import annotations

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from rich.progress import Progress as Bar

from dba3c import record
from dba3c.actors import greedy
from dba3c.config.schema import Config
from dba3c.learning.agent import Agent
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from tests.fakes.agents import UPDATES, saved, small
from tests.fakes.loopback import Loopback

GAMES = 3


@pytest.fixture(autouse=True)
def two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a simulator takes longer than its game here."""
    monkeypatch.setattr(greedy, "GROUP", 2)


def player(config: Config) -> Agent:
    agent = build.agent(config)
    agent.load(agent.weights.numpy(), UPDATES)
    return agent


def configured(profile: str, *overrides: str) -> Config:
    games = (f"evaluate.games={GAMES}", "evaluate.max_frames=400", "train.target_score=none", "train.seed=3")
    return small(f"env.profile={profile}", *games, *overrides)


@pytest.mark.parametrize("profile", ["deepmind", "paper"])
def test_filmed_games_have_the_scores_of_evaluation(profile: str) -> None:
    config = configured(profile, "evaluate.probe_games=0")
    agent, make_env = player(config), build.evaluation_env(config, threads=1)
    takes = record.play(config, agent, make_env, Bar(disable=True))
    scores = evaluate(config, agent, make_env, Loopback()).scores
    assert [take.score for _, take in takes] == scores
    assert len(set(scores)) > 1
    best = max(takes, key=lambda take: take[1].score)
    shots = list(record.shoot(config, agent, make_env, best, lambda: None))
    assert shots[-1].score == best[1].score > 0
    assert shots[-1].step == len(best[1].actions)


def test_a_stuck_game_is_filmed_until_evaluation_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of zeros does nothing, so that Breakout waits for the next ball for ever."""
    monkeypatch.setattr(greedy, "STUCK_STEPS", 20)
    config = configured("deepmind", "env.game=breakout", "evaluate.games=1", "evaluate.max_frames=27000")
    agent, make_env = player(config), build.evaluation_env(config, threads=1)
    agent.load(np.zeros_like(agent.weights.numpy()), UPDATES)
    (take,) = record.play(config, agent, make_env, Bar(disable=True))
    assert 20 < len(take[1].actions) < 200
    pictures = [shot.picture for shot in record.shoot(config, agent, make_env, take, lambda: None)]
    assert len(pictures) == 4 * len(take[1].actions)
    assert (pictures[-1] == pictures[-40]).all()
    with pytest.raises(RuntimeError, match="did not repeat game 1: score 0 instead of 9"):
        list(record.shoot(config, agent, make_env, (0, take[1]._replace(score=9.0)), lambda: None))


def test_the_command_films_the_best_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured("deepmind", "evaluate.probe_games=0")
    run_dir, file = saved(tmp_path / "run", config), tmp_path / "best.mp4"
    scores = evaluate(config, player(config), build.evaluation_env(config, 1), Loopback()).scores
    words = [str(run_dir), "--best", f"--games={GAMES}", "--seconds=1", f"--out={file}"]
    assert record.main(words) == 0
    assert f"with score {max(scores):g}\n" in capsys.readouterr().out
    assert imageio_ffmpeg.count_frames_and_secs(str(file))[0] == 60
    assert record.main([*words, "--games=1", "--start=500"]) == 2
    assert "start earlier" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.mp4", "run"]  # nothing half-written
