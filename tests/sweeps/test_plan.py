"""Plans of sweeps: which trainings a file stands for, where they go, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dba3c.config.messages import ConfigError
from dba3c.run_files.directory import write_exit_code
from dba3c.sweeps import plan
from dba3c.sweeps.plan import Training


def planned(tmp_path: Path, text: str) -> list[Training]:
    file = tmp_path / "sweep.yaml"
    file.write_text(text, encoding="utf-8")
    return plan.read(file, tmp_path / "runs")


def test_games_settings_and_seeds_are_multiplied(tmp_path: Path) -> None:
    text = """
    games: [pong, SpaceInvaders]
    seeds: [3, 5]
    common: {train.total_steps: 2M, env.noop_max: 7}
    settings:
      plain:
      sticky: {env.sticky: 0.25, preset: fast, env.noop_max: 30}
    """
    trainings = planned(tmp_path, text)
    assert [training.name for training in trainings] == [
        "pong-plain-3", "pong-plain-5", "pong-sticky-3", "pong-sticky-5",
        "space_invaders-plain-3", "space_invaders-plain-5", "space_invaders-sticky-3", "space_invaders-sticky-5",
    ]  # fmt: skip
    last = trainings[-1].config
    assert (last.env.game, last.env.sticky, last.env.noop_max) == ("space_invaders", 0.25, 30)
    assert (last.train.seed, last.train.total_steps, last.algorithm.name) == (5, 2_000_000, "a3c")
    assert trainings[0].config.algorithm.name == "ppo"  # what auto chooses for pong
    assert trainings[0].config.env.noop_max == 7
    assert trainings[0].run_dir == tmp_path / "runs" / "pong-plain-3"


def test_the_command_trains_what_was_planned(tmp_path: Path) -> None:
    (one,) = planned(tmp_path, "games: pong\nranks: 2\npreset: ppo\ncommon: {env.life_loss_terminal: no}")
    folder = tmp_path / "runs" / "pong-0"
    settings = "--env.life_loss_terminal=false --train.seed=0 --env.game=pong"
    assert one.command == f"dba3c train --ranks 2 --preset ppo --run-dir {folder} {settings}"
    assert one.name == "pong-0"
    assert one.ranks == 2


def test_plug_ins_are_named_to_every_training(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("games: catch\nseeds: 2", encoding="utf-8")
    for training in plan.read(file, tmp_path / "runs", ["own.py", "package.module"]):
        assert training.words[4:6] == ["--plugin=own.py", "--plugin=package.module"]


def test_seeds_may_be_counted(tmp_path: Path) -> None:
    trainings = planned(tmp_path, "games: catch\nseeds: 3")
    assert [training.config.train.seed for training in trainings] == [0, 1, 2]
    assert trainings[0].config.env.profile == "catch"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("games: pnog", "games='pnog': .*did you mean pong"),
        ("seeds: 3", "games: field required"),
        ("games: pong\nseed: 3", "seed: no such key; did you mean seeds"),
        ("games: pong\nseeds: 0", "seeds=0: "),
        ("games: pong\nseeds: [1, 1]", "pong-1 is there twice"),
        ("games: [pong, Pong]", "pong-0 is there twice"),
        ("games: pong\npreset: fst", "preset=fst: no such preset"),
        ("games: pong\ncommon: {env.stick: 1}", "pong-0: env.stick: no such key; did you mean env.sticky"),
        ("games: pong\nsettings: {bad: {env.sticky: 7}}", "pong-bad-0: env.sticky=7"),
        ("games: pong\nsettings: {a/b: {}}", "settings.a/b: use a name of letters"),
        ("games: pong\nranks: 9\ncommon: {train.total_steps: 10}", "pong-0: train.total_steps=10: is less than one"),
        ("- pong", "must hold games:"),
        ("games: [", "is not yaml"),
    ],
)
def test_what_could_not_be_trained_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        planned(tmp_path, text)


def test_a_training_has_finished_if_it_ended_well_with_the_same_settings(tmp_path: Path) -> None:
    (one,) = planned(tmp_path, "games: catch")
    assert not one.finished
    (one.run_dir / "checkpoints").mkdir(parents=True)
    (one.run_dir / "checkpoints" / "1.npz").touch()
    (one.run_dir / "config.yaml").write_text(one.config.dump(), encoding="utf-8")
    assert not one.finished
    write_exit_code(one.run_dir, 75)
    assert not one.finished
    write_exit_code(one.run_dir, 0)
    assert one.finished
    (longer,) = planned(tmp_path, "games: catch\ncommon: {train.total_steps: 9M}")
    assert not longer.finished
