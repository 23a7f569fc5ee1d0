"""Settings that contradict each other or the job; which changes a resumed run may bring."""

from __future__ import annotations

import pytest

from dba3c.config import consistency, loading
from dba3c.config.comparison import FIXED, differences
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from tests.fakes.settings import settings

FIXED_CHANGES = (
    "env.game=pong",
    "env.profile=paper",
    "env.width=9",
    "env.normalise_observations=True",
    "env.normalise_rewards=True",
    "env.full_action_space=True",
    "model.torso=nature",
    "model.hidden=64",
    "model.memory=8",
    "model.standardise=True",
    "model.separate=True",
    "optimizer.name=sgd",
)


@pytest.mark.parametrize("change", FIXED_CHANGES)
def test_changes_that_do_not_fit_the_saved_arrays_are_refused(change: str) -> None:
    name, wanted = change.split("=")
    with pytest.raises(ConfigError, match=f"{name}='?{wanted}'?: .*another --run-dir"):
        differences(settings(), settings(change))


def test_all_fixed_fields_are_tested() -> None:
    assert {change.split("=")[0] for change in FIXED_CHANGES} == set(FIXED)


@pytest.mark.parametrize(
    ("profile", "sticky", "reason"),
    [
        ("paper", "env.sticky=0.1", "env.sticky=0.1: env.profile=paper repeats actions with probability 0.25, always"),
        ("paper", "evaluate.sticky=0", "evaluate.sticky=0: env.profile=paper repeats actions with probability 0.25"),
        ("catch", "env.sticky=0.25", "env.sticky=0.25: env.profile=catch has no sticky actions; leave it out"),
        ("catch", "evaluate.sticky=0.25", "evaluate.sticky=0.25: env.profile=catch has no sticky actions"),
    ],
)
def test_sticky_actions_that_a_profile_does_not_have_are_refused(profile: str, sticky: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^{reason}"):
        loading.load("catch" if profile == "catch" else "paper", [sticky])


@pytest.mark.parametrize(
    ("overrides", "episodes"),
    [
        ([], "greedy episodes"),
        (["evaluate.policy=sampled", "env.sticky=0.1"], "sampled episodes with sticky actions 0.1"),
        (["env.sticky=0.1", "evaluate.sticky=0"], "greedy episodes"),
        (
            ["evaluate.policy=epsilon", "evaluate.sticky=0.25"],
            "epsilon-greedy (0.05) episodes with sticky actions 0.25",
        ),
        (["env.profile=paper", "evaluate.sticky=0.25"], "greedy episodes with sticky actions 0.25"),
    ],
)
def test_messages_say_what_is_played_in_an_evaluation(overrides: list[str], episodes: str) -> None:
    assert settings(*overrides).evaluation_episodes == episodes


def test_other_changes_are_reported() -> None:
    wanted = settings("optimizer.learning_rate=0.5", "env.n_sim=3", "train.target_score=none")
    assert differences(settings(), wanted) == [
        "env.n_sim: 16 → 3",
        "optimizer.learning_rate: 0.001 → 0.5",
        "train.target_score: 'auto' → 'none'",
    ]
    assert differences(wanted, wanted) == []
    assert differences(wanted, wanted.model_copy(update={"targets": {"pong": 1.0}})) == []


def load(*overrides: str, preset: str = "paper") -> Config:
    return loading.load(preset, overrides)


def test_a_run_without_a_single_update_is_refused() -> None:
    few = load("train.total_steps=128")
    consistency.check_ranks(few, 4)
    with pytest.raises(ConfigError, match=r"^train\.total_steps=128: .* 5 ranks × 32 samples = 160; raise it"):
        consistency.check_ranks(few, 5)


PPO = ("algorithm.name=ppo", "actor.kind=lockstep", "train.batch_size=auto", "actor.n_steps=8", "algorithm.passes=3")


def test_ppo_needs_whole_minibatches_and_saves_between_rollouts() -> None:
    assert load(*PPO, "algorithm.minibatches=4").batch_size == 80
    with pytest.raises(ConfigError, match=r"^actor\.kind=async: .* use lockstep"):
        load("algorithm.name=ppo")
    with pytest.raises(ConfigError, match=r"^algorithm\.minibatches=3: must divide actor\.n_steps=8"):
        load(*PPO, "algorithm.minibatches=3")
    exact = (*PPO, "algorithm.minibatches=4", "checkpoint.restart_games=true")
    assert load(*exact, "checkpoint.every_updates=24").checkpoint.every_updates == 24
    with pytest.raises(ConfigError, match=r"^checkpoint\.every_updates=25: .* multiple of the 12 updates"):
        load(*exact, "checkpoint.every_updates=25")


def test_a_memory_needs_whole_segments_and_minibatches_of_simulators() -> None:
    assert load("model.memory=8", "train.batch_size=35").batch_size == 35
    with pytest.raises(ConfigError, match=r"^train\.batch_size=32: with model\.memory .* multiple of actor\.n_steps=5"):
        load("model.memory=8")
    assert load(*PPO, "model.memory=8", "algorithm.minibatches=5").env.n_sim == 10
    with pytest.raises(ConfigError, match=r"^algorithm\.minibatches=4: must divide env\.n_sim=10"):
        load(*PPO, "model.memory=8", "algorithm.minibatches=4")


def test_shards_are_equal_parts_of_a_lockstep_actor() -> None:
    lockstep = ("actor.kind=lockstep", "train.batch_size=auto", "env.n_sim=6")
    assert load(*lockstep, "actor.shards=3").actor.shards == 3
    with pytest.raises(ConfigError, match=r"^actor\.shards=4: must divide env\.n_sim=6"):
        load(*lockstep, "actor.shards=4")
    with pytest.raises(ConfigError, match=r"^actor\.shards=2: actor\.kind=async .* use lockstep"):
        load("actor.shards=2")


def test_threads_of_the_async_actor() -> None:
    config = load("actor.predictors=2", "actor.trainers=3", "actor.agents=5", "actor.self_tuning=true")
    assert (config.actor.predictors, config.actor.trainers, config.actor.agents) == (2, 3, 5)
    lockstep = ("actor.kind=lockstep", "train.batch_size=auto")
    for words in ("agents=1", "predictors=2", "trainers=2", "self_tuning=true"):
        with pytest.raises(ConfigError, match=rf"^actor\.{words}: actor\.kind=lockstep .* use async"):
            load(*lockstep, f"actor.{words}")
    with pytest.raises(ConfigError, match=r"^actor\.agents=3: env\.n_sim=10 .* are 2 agents; raise env\.n_sim"):
        load("actor.group_size=5", "actor.agents=3")
    with pytest.raises(ConfigError, match=r"^actor\.trainers=2: only with comm\.strategy=allreduce"):
        load("actor.trainers=2", "comm.strategy=server")
    with pytest.raises(ConfigError, match=r"^actor\.self_tuning=true: .* cannot be late"):
        load("actor.self_tuning=true", "env.normalise_rewards=true")
    consistency.check_ranks(load("actor.self_tuning=true"), 1)
    with pytest.raises(ConfigError, match=r"^actor\.self_tuning=true: 2 ranks .* use one rank"):
        consistency.check_ranks(load("actor.self_tuning=true"), 2)


def test_backups_and_slow_ranks_must_exist() -> None:
    consistency.check_ranks(load("comm.strategy=backup", "comm.n_backup=3"), 4)
    with pytest.raises(ConfigError, match=r"^comm\.n_backup=4: .* use at most 3"):
        consistency.check_ranks(load("comm.strategy=backup", "comm.n_backup=4"), 4)
    consistency.check_ranks(load("debug.slow_rank=3,2.5"), 4)
    with pytest.raises(ConfigError, match=r"^debug\.slow_rank=4,2: there is no rank 4 among 4"):
        consistency.check_ranks(load("debug.slow_rank=4,2"), 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("comm.strategy=server", *PPO), r"^algorithm\.name=ppo: .* needs another algorithm"),
        (("comm.strategy=server", "comm.transport=horovod"), r"^comm\.transport=horovod: .* needs mpi"),
        (("comm.strategy=hogwild", "comm.aggregate=2"), r"^comm\.strategy=hogwild: has no servers"),
        (
            ("comm.strategy=hogwild", "comm.on_failure=shrink"),
            r"^comm\.on_failure=shrink: .* use comm\.strategy=server",
        ),
        (("comm.strategy=server", "debug.staleness=3"), r"^debug\.staleness=3: only with comm\.strategy=allreduce"),
        (("comm.strategy=hogwild", "optimizer.shared=false"), r"^optimizer\.shared=false: .* optimizer\.name=rmsprop"),
        (("optimizer.name=rmsprop", "optimizer.shared=false"), r"^optimizer\.shared=false: only with comm\.strategy"),
    ],
)
def test_what_does_not_go_together_with_changing_weights_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(*words)


def test_some_rank_must_play_and_gradients_of_a_group_must_exist() -> None:
    served = ("comm.strategy=server", "comm.servers=3", "comm.dedicated=true")
    consistency.check_ranks(load(*served), 4)
    with pytest.raises(ConfigError, match=r"^comm\.servers=3: .* at least one of the 3 ranks must play; use at most 2"):
        consistency.check_ranks(load(*served), 3)
    with pytest.raises(ConfigError, match=r"^comm\.aggregate=2: only 1 ranks have gradients"):
        consistency.check_ranks(load(*served, "comm.aggregate=2"), 4)


Q = ("algorithm.name=q", "train.batch_size=35")


def test_targets_of_q_learning_are_never_wrong() -> None:
    assert load(*Q, "algorithm.returns=n_step", "train.batch_size=32").batch_size == 32
    assert load(*Q, "algorithm.returns=sarsa").whole_segments  # what the async actor delivers then
    with pytest.raises(ConfigError, match=r"^train\.batch_size=32: with algorithm\.returns=one_step .* multiple of"):
        load(*Q, "algorithm.returns=one_step", "train.batch_size=32")
    with pytest.raises(ConfigError, match=r"^actor\.carry=false: algorithm\.returns=sarsa .* set actor\.carry=true"):
        load(*Q, "algorithm.returns=sarsa", "actor.kind=lockstep", "train.batch_size=auto")
    with pytest.raises(ConfigError, match=r"^actor\.kind=async: algorithm\.name=q learns from whole segments"):
        load(*Q, "algorithm.returns=lambda")
    with pytest.raises(ConfigError, match=r"^model\.memory=8: algorithm\.name=q .* model\.memory=0"):
        load(*Q, "model.memory=8")


REPLAY = (
    "algorithm.name=q", "algorithm.returns=one_step", "actor.kind=lockstep", "experience.capacity_steps=100000",
    "experience.steps_per_update=5", "experience.scope=global",
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("algorithm.name=a3c", "experience.capacity_steps=100000: only algorithm.name=q"),
        ("algorithm.returns=sarsa", "experience.capacity_steps=100000: only algorithm.name=q"),
        ("actor.kind=async", "actor.kind=async: .* use lockstep"),
        ("checkpoint.restart_games=true", "checkpoint.restart_games=true: a replay memory starts empty"),
        ("experience.steps_per_update=3", "experience.steps_per_update=3: must divide .* = 50"),
        ("experience.warm_up_steps=10", "experience.warm_up_steps=10: must be at least 50"),
        ("experience.warm_up_steps=100000", "experience.warm_up_steps=100000: .* at most"),
        ("comm.strategy=backup", "experience.scope=global: all ranks must keep .* use comm.strategy=allreduce"),
        ("comm.on_failure=shrink", "experience.scope=global: .* and comm.on_failure=abort"),
    ],
)
def test_what_a_replay_memory_cannot_do_is_refused(change: str, complaint: str) -> None:
    assert load(*REPLAY).batch_size == 32
    with pytest.raises(ConfigError, match=f"^{complaint}"):
        load(*REPLAY, "actor.carry=true", change)


def test_an_algorithm_with_other_outputs_needs_another_run_directory() -> None:
    assert differences(settings(), settings("algorithm.name=ppo", "actor.n_steps=8", "algorithm.minibatches=4"))
    for old, new in (("a3c", "q"), ("q", "a3c")):
        with pytest.raises(ConfigError, match=f"^algorithm.name='{new}': .*trained with '{old}'; .*another --run-dir"):
            differences(settings(f"algorithm.name={old}"), settings(f"algorithm.name={new}"))
