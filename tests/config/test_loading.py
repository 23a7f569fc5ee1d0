"""Configuration: the paper's numbers, what overrides what, and that bad input of any kind gives one clear line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dba3c.config import loading
from dba3c.config.loading import HYPERPARAMS
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config, file_name

TEXT = HYPERPARAMS.read_text(encoding="utf-8")
VALUES: dict[str, Any] = yaml.safe_load(TEXT)
NAMES = [f"{section}.{key}" for section in VALUES if section != "presets" for key in VALUES[section]]
PRESETS = list(VALUES["presets"])


def load(*overrides: str, preset: str = "paper") -> Config:
    return loading.load(preset, overrides)


def load_text(folder: Path, text: str, preset: str = "paper", *overrides: str) -> Config:
    path = folder / "mine.yaml"
    path.write_bytes(text.encode())
    return loading.load(preset, overrides, path)


def value_of(loaded: Config, name: str) -> Any:
    section, key = name.split(".")
    return loaded.model_dump()[section][key]


def changed(section: str, **keys: object) -> str:
    """The text of hyperparams.yaml with other keys in one section; None leaves a key out."""
    mixed = VALUES[section] | keys
    return yaml.safe_dump(VALUES | {section: {key: value for key, value in mixed.items() if value is not None}})


def complaint(call: Callable[[], object]) -> str:
    """The one line that says what is wrong."""
    with pytest.raises(ConfigError) as error:
        call()
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 1100
    return message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("env.n_sim", 10), ("train.batch_size", 32), ("optimizer.learning_rate", 0.001),  # Table 1
        ("optimizer.epsilon", 1e-8), ("optimizer.beta1", 0.8), ("optimizer.beta2", 0.75), ("optimizer.name", "adam"),
        ("actor.n_steps", 5), ("algorithm.gamma", 0.99), ("algorithm.entropy", 0.01), ("algorithm.value", 0.5),
        ("algorithm.clip", "tensor"), ("algorithm.clip_norm", 0.1), ("env.reward_clip", 1.0), ("env.profile", "paper"),
        ("model.torso", "ba3c"), ("model.hidden", 128), ("evaluate.games", 50), ("evaluate.every_updates", 1000),
    ],
)  # fmt: skip
def test_defaults_are_the_papers(name: str, value: object) -> None:
    assert value_of(loading.load(), name) == value


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_change_what_they_say_and_nothing_else(preset: str) -> None:
    changes = {f"{s}.{k}": v for s, keys in VALUES["presets"][preset].items() for k, v in keys.items()}
    after = load(preset=preset)
    for name in NAMES:
        value = value_of(after, name)
        value = list(value) if isinstance(value, tuple) else value  # as yaml has it
        assert value == changes.get(name, VALUES[name.split(".")[0]][name.split(".")[1]])


def test_pong_is_the_papers_exception() -> None:
    pong = load(preset="paper-pong")
    assert (pong.env.game, pong.optimizer.epsilon, pong.target_score) == ("pong", 1e-3, 20.0)


def test_command_line_wins_over_preset_wins_over_yaml(tmp_path: Path) -> None:
    text = changed("model", hidden=64)
    text = text.replace("presets:\n", "presets:\n  mine: {model: {hidden: 32}, optimizer: {beta1: 0.7}}\n")
    assert load_text(tmp_path, text).model.hidden == 64
    assert load_text(tmp_path, text, "mine").model.hidden == 32
    last = load_text(tmp_path, text, "mine", "model.hidden=8", "model.hidden=16")
    assert (last.model.hidden, last.optimizer.beta1, last.optimizer.beta2) == (16, 0.7, 0.75)


def test_a_file_of_some_keys_is_laid_over_the_preset(tmp_path: Path) -> None:
    text = "env: {game: pong, n_sim: 4}\ntrain: {seed: 7}\n"
    assert load_text(tmp_path, text, "ppo", "train.seed=8") == load(
        "env.game=pong", "env.n_sim=4", "train.seed=8", preset="ppo"
    )


def test_the_configuration_of_a_run_is_a_file_of_all_keys(tmp_path: Path) -> None:
    written = load("env.game=qbert", "model.hidden=64", preset="ppo")
    for preset in PRESETS:
        assert load_text(tmp_path, written.dump(), preset) == written


def test_a_file_with_presets_may_leave_out_what_it_does_not_change(tmp_path: Path) -> None:
    text = "model: {hidden: 64}\npresets: {mine: {train: {seed: 3}}}"
    assert load_text(tmp_path, text, "mine") == load("model.hidden=64", "train.seed=3")
    assert load_text(tmp_path, text, "ppo") == load(preset="ppo")  # whose hidden units win over the file's


@pytest.mark.parametrize(
    "written", ["1M", "1000k", "0.001G", "1e6", "1E6", "1000000", "1_000_000", "1.0e+6", "1000000.0"]
)
def test_numbers_may_be_written_as_powers(written: str) -> None:
    loaded = load(f"train.total_steps={written}", f"env.reward_clip={written}")
    assert (loaded.train.total_steps, loaded.env.reward_clip) == (1_000_000, 1e6)
    assert isinstance(loaded.train.total_steps, int)


def test_derived_values() -> None:
    for written, target in {"auto": 300.0, "none": None, "null": None, "-21": -21.0}.items():
        assert load(f"train.target_score={written}").target_score == target
    assert load("env.game=freeway").target_score is None  # no target is known for it
    assert load("targets.freeway=30", "env.game=freeway").target_score == 30.0
    assert load("env.n_sim=7").batch_size == 32
    assert load("env.n_sim=7", "actor.n_steps=3", "train.batch_size=auto").batch_size == 21
    assert load("actor.kind=lockstep", "train.batch_size=auto").batch_size == 50
    assert load("actor.kind=lockstep", "train.batch_size=50", "actor.group_size=5").batch_size == 50


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("env.n_sim=2.5", "valid integer"), ("env.n_sim=[1, 2]", "valid integer"), ("env.n_sim='x'", "valid integer"),
        ("env.n_sim=0", "greater than or equal to 1"), ("env.n_sim=True", "should be a number"),
        ("train.batch_size=True", "should be a number"), ("optimizer.beta1=False", "should be a number"),
        ("train.seed=-1", "greater than or equal to 0"), ("train.seed=4294967296", "less than 4294967296"),
        ("optimizer.beta1=1", "less than 1"), ("optimizer.learning_rate=0", "greater than 0"),
        ("algorithm.gamma=1.01", "less than or equal to 1"), ("checkpoint.restart_games=3", "valid boolean"),
        ("env.game=3", "valid string"), ("targets.pong='high'", "valid number"),
        ("model.torso='vgg'", "'ba3c', 'ba3c_linear', 'nips', 'nature', 'ga3c', 'mlp' or 'mlp_relu'"),
        ("actor.group_size=3", "must divide env.n_sim=10"), ("comm.n_backup=1", "without comm.strategy=backup"),
        ("comm.n_backup=-1", "greater than or equal to 0"),
        ("debug.slow_rank='fast'", "should match pattern"), ("algorithm.ratio_clip=1", "less than 1"),
        ("train.total_steps=1e+18", "less than or equal to 1000000000000"),
        ("train.total_steps=1000000000001", "less than or equal to 1000000000000"),
        ("env.n_sim=1000000001", "less than or equal to"), ("model.hidden=100000", "less than or equal to 65536"),
        ("comm.silence_seconds=1e+300", "less than or equal to"), ("env.step_seconds=1e+30", "less than or equal to"),
    ],
)  # fmt: skip
@pytest.mark.fault(
    39,
    "value out of bounds, such as --train.total_steps=1e18",
    "refused in one line, code 2, with field, value and remedy",
)
def test_bad_values_are_named_with_their_field_and_the_remedy(override: str, remedy: str) -> None:
    message = complaint(lambda: load(override))
    assert message.startswith(f"{override}: ")
    assert remedy in message


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("enw.n_sim=3", ["enw: ", "did you mean env?"]), ("zzzzzz.n_sim=3", ["zzzzzz: ", "known: env, model"]),
        ("env.nsim=3", ["env.nsim: ", "mean env.n_sim?"]), ("env.zzzzzz=3", ["env.zzzzzz: ", "known: env.game, "]),
        ("env.n_sim.x=3", ["env.n_sim.x: ", "mean env.n_sim"]), ("env.n_sim", ["--env.n_sim: ", "mean --env.n_sim"]),
        ("rank=2", ["--rank=2: ", "mean --ranks?"]), ("seed=1", ["--seed=1: ", "mean --train.seed?"]),
        ("version", ["--version: ", "write --section.key=value"]),
        ("?", ["--?: ", "write --section.key=value"]), ("", ["--: ", "write --section.key=value"]),
        ("n_sim=3", ["--n_sim=3: ", "mean --env.n_sim"]), ("env.n_sim=", ["env.n_sim=None: ", "valid integer"]),
        ("algorithm.gamma=.nan", ["gamma=nan: ", "less than"]), ("train.target_score=.inf", ["score=inf: ", "finite"]),
        ("actor.kind=lockstep", ["train.batch_size=32: ", "env.n_sim × actor.n_steps = 50", "auto or 50", "async"]),
    ],
)  # fmt: skip
def test_bad_overrides_are_named_with_the_remedy(override: str, parts: list[str]) -> None:
    message = complaint(lambda: load(override))
    assert [part for part in parts if part not in message] == [], message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["mine.yaml", "must hold sections", "None"]), ("- env", ["mine.yaml", "must hold sections", "['env']"]),
        ("env: [", ["mine.yaml", "is not yaml", "line 1"]), ("\x00", ["mine.yaml", "is not yaml"]),
        ("presets: 3", ["mine.yaml", "must hold presets", "3"]),
        ("presets: {paper: 3}", ["presets.paper", "must hold sections", "3"]),
        (changed("env", n_sim=True), ["env.n_sim=True", "number"]),
        (changed("env", n_simm=3), ["env.n_simm", "did you mean env.n_sim?"]),
        (TEXT + "\nmodels: {}\n", ["models", "did you mean model"]),
        (yaml.safe_dump(VALUES | {"env": 3}), ["env=3", "dictionary"]),
        (TEXT + "\nenv: 3\n", ["mine.yaml", "'env' is written twice"]),
    ],
)  # fmt: skip
def test_bad_files_are_named_with_the_remedy(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = complaint(lambda: load_text(tmp_path, text))
    assert [part for part in parts if part not in message] == [], message


def test_a_preset_that_was_renamed_still_works() -> None:
    assert load(preset="paac") == load(preset="a2c")
    assert loading.note_renamed("paac").startswith("preset paac is now called a2c;")
    assert loading.note_renamed("a2c") == ""
    assert "paac" not in PRESETS


def test_unknown_presets_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    assert "--preset=papr: no such preset in hyperparams.yaml; did you mean paper" in complaint(
        lambda: load(preset="papr")
    )
    assert f"known: {', '.join(PRESETS)}" in complaint(lambda: load(preset="zzzzzz"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    for name in ("absent.yaml", ".", "bytes.yaml"):
        path = tmp_path / name
        assert f"--config={path}: cannot be read" in complaint(partial(loading.load, path=path))


def test_a_run_of_version_0_1_ended_with_the_first_evaluation_that_reached_its_target() -> None:
    written = load("evaluate.in_a_row=2").dump().replace("  in_a_row: 2\n", "")
    assert loading.parse(written).evaluate.in_a_row == 1


@pytest.mark.parametrize("preset", PRESETS)
def test_parse_undoes_dump(preset: str) -> None:
    original = load("train.target_score=none", "optimizer.epsilon=1e-5", "train.seed=4294967295", preset=preset)
    assert loading.parse(original.dump()) == original


@pytest.mark.parametrize(
    ("text", "override"),
    [
        (TEXT, "env.n_sim=!!bool x"), (TEXT, "env.n_sim=!!timestamp x"),  # KeyError, AttributeError
        (TEXT, "env.n_sim=" + "[" * 1000), ("[" * 1000, "env.n_sim=1"),  # RecursionError
        (TEXT, "env.n_sim=-0x" + "f" * 5000),  # ValueError: the message prints so long a number
        (TEXT, "a\nb.c=1"),  # a message of two lines
        (TEXT, f"debug.slow_rank={'9' * 5000},1"), (TEXT, f"debug.delays=0.{'1' * 5000},1"),  # int() refuses so many
        (TEXT, f"train.total_steps={'9' * 5000}"), (TEXT, f"env.game={'x' * 5000}"), (TEXT, f"{'x' * 5000}.y=1"),
        ("env: !!bool x", "env.n_sim=1"), ("presets: {1: {}}\nenv: {}", "env.x=1"),  # KeyError, TypeError
        ("env: 2001-99-99", "env.n_sim=1"), ("env: 0x_", "env.n_sim=1"),  # ValueError
    ],
)  # fmt: skip
def test_odd_input_is_refused(tmp_path: Path, text: str, override: str) -> None:
    assert complaint(lambda: load_text(tmp_path, text, "paper", override))


def test_parse_refuses_what_is_not_yaml() -> None:
    assert complaint(lambda: loading.parse("env: ["))


NO_PLAIN_NAMES = ["../../x", "/any/path", "a/b", ".hidden", "-rf", "a b", "a\nb", "$(x)", "x" * 65, "."]


@pytest.mark.parametrize("game", NO_PLAIN_NAMES)
def test_parse_refuses_a_game_that_is_no_plain_name(game: str) -> None:
    """Programs that read a run name files after its game."""
    written = load().model_copy(update={"env": load().env.model_copy(update={"game": game})})
    assert "plain name" in complaint(lambda: loading.parse(written.dump()))
    assert loading.parse(load("env.game=space_invaders").dump()).env.game == "space_invaders"


@pytest.mark.parametrize(("game", "file"), [("ALE/Pong-v5", "ALE-Pong-v5"), ("a.b:Own/C-v0", "a.b-Own-C-v0")])
def test_ids_of_gymnasium_name_plain_files(game: str, file: str) -> None:
    env = load().env.model_copy(update={"game": game, "profile": "gymnasium"})
    assert loading.parse(load().model_copy(update={"env": env}).dump()).env.game == game
    assert file_name(game) == file
    for crafted in ("../../x", "/any/path", ":x", "a b/c-v0", "$(x):y"):
        written = load().model_copy(update={"env": env.model_copy(update={"game": crafted})})
        assert "plain name" in complaint(lambda written=written: loading.parse(written.dump()))  # type: ignore[misc]


def test_powers_in_files(tmp_path: Path) -> None:
    assert load_text(tmp_path, changed("train", total_steps="1e6")).train.total_steps == 1_000_000


WORDS = [*"[]{}:,-?&*|>'\"%@#~! \n1e._", "null", "true", "- ", ": ", "env", "<<", "...", "---"]
LIKE_YAML = st.lists(st.sampled_from(WORDS), max_size=20).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=())) | LIKE_YAML
OVERRIDES = ANY_TEXT | st.tuples(st.sampled_from(NAMES), ANY_TEXT).map("=".join)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates()
KEYS = st.text(max_size=5) | st.integers()
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=5)
SECTIONS = st.dictionaries(st.sampled_from([*Config.model_fields]) | st.text(max_size=5), TREES, max_size=3)
CHANGED = st.builds(
    lambda changes, preset: VALUES | changes | {"presets": {"paper": preset}}, SECTIONS, SECTIONS | TREES
)
FILES = st.text() | LIKE_YAML | CHANGED.map(yaml.safe_dump)
FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config")


@FEW
@given(override=OVERRIDES)
def test_any_override_is_taken_or_refused(folder: Path, override: str) -> None:
    with suppress(ConfigError):
        load_text(folder, TEXT, "paper", override)


@FEW
@given(text=FILES)
def test_any_file_is_taken_or_refused(folder: Path, text: str) -> None:
    with suppress(ConfigError):
        load_text(folder, text)
