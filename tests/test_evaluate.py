"""evaluate: files and places that cannot be used are refused before an episode is played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dba3c import evaluate
from dba3c.envs import resolve_title
from dba3c.run_files import checkpoint, trained_agents
from tests.fakes.agents import saved, small, untrained


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("evaluate") / "run", small())


def refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        evaluate.main(words)
    assert ended.value.code == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    (error,) = [line for line in shown.err.splitlines() if not line.endswith("loading TensorFlow")]
    assert error.startswith("dba3c: ")
    return error


@pytest.mark.fault(
    54,
    "evaluate --json in a folder that does not exist",
    "refused in one line, code 2, before any episode",
)
def test_a_place_that_the_scores_cannot_be_written_to_is_refused_at_once(
    run_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for file, reason in ((tmp_path / "no" / "such.json", "there is no folder"), (tmp_path, "is a folder")):
        assert reason in refused([str(run_dir), "--games=100000", f"--json={file}"], capfd)
    assert "give it a name" in refused([str(run_dir), "--json="], capfd)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--sticky=1.5"], "evaluate.sticky=1.5: input should be less than 1, or"),
        (["--epsilon=-1"], "evaluate.epsilon=-1.0: input should be greater"),
        (["--sampled", "--epsilon=0.1"], "not allowed with argument --sampled"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(
    run_dir: Path, words: list[str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert reason in refused([str(run_dir), *words], capfd)


def test_options_say_how_the_episodes_are_played(run_dir: Path) -> None:
    def played(*words: str) -> str:
        options = evaluate.parser().parse_args([str(run_dir), *words])
        return trained_agents.chosen(options, resolve_title).config.evaluation_episodes

    assert played() == played("--greedy") == "greedy episodes"
    assert played("--sampled", "--sticky=0.25") == "sampled episodes with sticky actions 0.25"
    assert played("--epsilon", "0.1") == "epsilon-greedy (0.1) episodes"


def test_a_checkpoint_that_does_not_fit_its_own_configuration_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state = untrained(small())
    file = checkpoint.add(tmp_path, state._replace(weights=np.zeros(7, np.float32), optimizer={}))
    assert "the checkpoint has 7 weights" in refused([str(file)], capfd)


@pytest.mark.parametrize(("game", "reason"), [("warlords", "two players"), ("pnog", "did you mean pong")])
def test_a_checkpoint_of_no_game_that_can_be_played_is_refused(
    tmp_path: Path, game: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = small()
    crafted = config.model_copy(update={"env": config.env.model_copy(update={"game": game})})
    file = checkpoint.add(tmp_path, untrained(config)._replace(config=crafted))
    assert reason in refused([str(file)], capfd)


def test_best_weights_are_those_of_a_run_that_was_evaluated(
    run_dir: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "holds no checkpoints/best.npz; leave --best out" in refused([str(run_dir), "--best"], capfd)
    assert "a shipped agent holds no" in refused(["--pretrained=pong", "--best"], capfd)
    state = untrained(small())
    trained_agents.save_best(tmp_path / "checkpoints", state._replace(progress=state.progress | {"updates": 3}))
    options = evaluate.parser().parse_args([str(tmp_path), "--best"])
    assert trained_agents.chosen(options, resolve_title, options.best).progress["updates"] == 3
