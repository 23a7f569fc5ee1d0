"""Films: the episodes are evaluation's, the frames are the emulator's, and the files can be played."""

from __future__ import annotations

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from dba3c import record
from dba3c.actors import single_episodes
from dba3c.config.schema import Config
from dba3c.film import shots
from dba3c.learning.agent import Agent
from dba3c.training import build
from dba3c.training.evaluation import evaluate
from dba3c.types import Array, Clock
from tests.fakes.agents import UPDATES, saved, small
from tests.fakes.loopback import Loopback

GAMES = 3


@pytest.fixture(autouse=True)
def two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a simulator takes longer than its episode here."""
    monkeypatch.setattr(single_episodes, "GROUP", 2)


def first_agent(config: Config) -> Agent:
    agent = build.agent(config)
    agent.load(agent.weights.numpy(), Clock(UPDATES, 0, 1))
    return agent


def configured(profile: str, *overrides: str) -> Config:
    games = (f"evaluate.games={GAMES}", "evaluate.max_frames=400", "train.target_score=none", "train.seed=3")
    return small(f"env.profile={profile}", *games, *overrides)


@pytest.mark.parametrize(
    ("profile", "overrides"),
    [
        ("deepmind", []),
        ("paper", []),
        ("deepmind", ["evaluate.policy=sampled", "evaluate.sticky=0.25"]),
        ("deepmind", ["evaluate.policy=epsilon", "evaluate.epsilon=0.5", "env.full_action_space=true"]),
        ("paper", ["evaluate.policy=sampled", "env.full_action_space=true"]),
    ],
)
def test_filmed_episodes_have_the_scores_of_evaluation(profile: str, overrides: list[str]) -> None:
    config = configured(profile, "evaluate.probe_games=0", *overrides)
    agent, make_env = first_agent(config), build.evaluation_env(config, threads=1)
    takes = shots.play(config, agent, make_env, lambda _: None)
    scores = evaluate(config, agent, make_env, Loopback()).scores
    assert [take.episode.score for take in takes] == scores
    assert len(set(scores)) > 1
    best = max(takes, key=lambda take: take.episode.score)
    filmed = list(shots.shoot(config, agent, make_env, best, lambda: None))
    assert filmed[-1].score == best.episode.score > 0
    assert filmed[-1].step == len(best.episode.actions)


def test_a_film_remembers_what_the_episode_did(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured("deepmind", "model.memory=8", "evaluate.games=1")
    agent, make_env = first_agent(config), build.evaluation_env(config, threads=1)
    remembered: dict[str, list[Array]] = {"greedy": [], "act": []}
    for name, memories in remembered.items():
        method = getattr(agent, name)
        monkeypatch.setattr(agent, name, lambda *given, m=method, to=memories: (to.append(given[-1]), m(*given))[1])
    (take,) = shots.play(config, agent, make_env, lambda _: None)
    assert list(shots.shoot(config, agent, make_env, take, lambda: None))
    assert np.abs(remembered["greedy"][-1]).max() > 0.01
    np.testing.assert_allclose(remembered["act"], remembered["greedy"], rtol=1e-5, atol=1e-6)


def test_a_stuck_game_is_filmed_until_evaluation_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of zeros does nothing, so that Breakout waits for the next ball for ever."""
    monkeypatch.setattr(single_episodes, "STUCK_STEPS", 20)
    config = configured("deepmind", "env.game=breakout", "evaluate.games=1", "evaluate.max_frames=27000")
    agent, make_env = first_agent(config), build.evaluation_env(config, threads=1)
    agent.load(np.zeros_like(agent.weights.numpy()), Clock(UPDATES, 0, 1))
    (take,) = shots.play(config, agent, make_env, lambda _: None)
    assert 20 < len(take.episode.actions) < 200
    pictures = [shot.picture for shot in shots.shoot(config, agent, make_env, take, lambda: None)]
    assert len(pictures) == 4 * len(take.episode.actions)
    assert (pictures[-1] == pictures[-40]).all()
    other = take._replace(episode=take.episode._replace(score=9.0))
    with pytest.raises(RuntimeError, match="did not repeat episode 1: score 0 instead of 9"):
        list(shots.shoot(config, agent, make_env, other, lambda: None))


def test_the_command_films_the_best_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured("deepmind", "evaluate.probe_games=0")
    run_dir, file = saved(tmp_path / "run", config), tmp_path / "best.mp4"
    scores = evaluate(config, first_agent(config), build.evaluation_env(config, 1), Loopback()).scores
    words = [str(run_dir), "--best", f"--games={GAMES}", "--seconds=1", f"--out={file}"]
    assert record.main(words) == 0
    assert f"with score {max(scores):g}\n" in capsys.readouterr().out
    assert imageio_ffmpeg.count_frames_and_secs(str(file))[0] == 60
    assert record.main([*words, "--games=1", "--start=500"]) == 2
    assert "choose an earlier start" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.mp4", "run"]  # nothing half-written
