"""What README and docs show can be done: the example trains, links lead somewhere, commands are understood."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import dba3c
from dba3c import (
    bench,
    evaluate,
    export,
    games,
    record,
    report,
    results,
    show_config,
    status,
    sweep,
    train,
    tune,
    version,
)
from dba3c.__main__ import COMMANDS
from dba3c.config import loading
from dba3c.run_files.display import Display
from dba3c.run_files.progress import Progress
from dba3c.training import order
from tests.end_to_end import documented
from tests.fakes import registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTENDING = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
NAMES = {"algorithm.name": "smooth", "env.profile": "coarse", "model.torso": "tiny"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMENTED = [ROOT / "Makefile", ROOT / "hyperparams.yaml", *sorted((ROOT / "slurm").iterdir())]
KEYS = loading.load().flat()
PARSERS: dict[str, Callable[[list[str]], object]] = {
    "train": train.parse,
    "bench": bench.parse,
    "evaluate": lambda words: evaluate.parser().parse_args(words),
    "record": lambda words: record.parser().parse_args(words),
    "report": lambda words: report.parser().parse_args(words),
    "export": lambda words: export.parser().parse_args(words),
    "results": lambda words: results.parser().parse_args(words),
    "status": lambda words: status.parser().parse_args(words),
    "sweep": lambda words: sweep.parser().parse_args(words),
    "tune": lambda words: tune.parser().parse_args(words),
    "games": lambda words: games.parser().parse_args(words),
    "version": lambda words: version.parser().parse_args(words),
    "config": lambda words: order.request(show_config.parser(), words),
}
STIFF = [  # sentences of version 0.1 that no native speaker would write
    "`--help` tells the options",
    "Training goes on and tells",
    "only if the last save fails the code is 4",
    "more ranks than cores want",
    "those that wait take the cores from those that work",
    "a film whose score were another one",
    "learned from by nobody",
    "nobody else need notice",
    "The curves are those of the games that are learned from",
    "the games of the table are greedy",
    "pixels less their mean",
    "are included but the one that came after it",
    "what is said about more nodes is a prediction",
    "the same command goes on",
]
page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def plugins(folder: Path) -> dict[str, str]:
    """Write the plug-ins that the page shows, file by file; return them by name."""
    blocks = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", EXTENDING, re.DOTALL)
    for name, text in blocks:
        (folder / name).write_text(text, encoding="utf-8")
    return dict(blocks)


def test_the_algorithm_of_the_page_is_a_short_file(tmp_path: Path) -> None:
    assert len(plugins(tmp_path)["smooth.py"].strip().splitlines()) <= 25


def test_the_example_of_an_own_algorithm_environment_and_network_trains(tmp_path: Path) -> None:
    short = {
        "env.n_sim": 2, "actor.n_steps": 5, "train.total_steps": 60, "evaluate.games": 1, "evaluate.max_frames": 40,
        "train.target_score": "none", "algorithm.trace": 0.8, "model.filters": 8,
    }  # fmt: skip
    words = [f"--{key}={value}" for key, value in (NAMES | short).items()]
    words += [f"--plugin={name}" for name in plugins(tmp_path)]
    command = [sys.executable, "-m", "dba3c.train", "--preset=a2c", "--game=pong", "--run-dir=run", *words]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["updates"], summary["skipped"]) == (6, 0)
    convolution, hidden = (8 * 8 * 4 + 1) * 8, (9 * 9 * 8 + 1) * 128  # of 42×42 pixels with stride 4
    assert summary["parameters"] == convolution + hidden + (128 + 1) * (6 + 1)
    written = (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert all(f"{key.split('.')[1]}: {name}\n" in written for key, name in NAMES.items())
    assert "trace: 0.8\n" in written


def code(page: Path) -> list[str]:
    """The lines of a page that are code: commands, without comments and with continued lines joined, and spans."""
    text = re.sub(r"```[a-z]+\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = "".join(re.findall(r"```\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    lines = [line.partition("  #")[0] for line in blocks.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of dba3c that a page names, each with its arguments."""
    found = [re.search(r"(?:python -m dba3c\.|\bdba3c )([a-z]+)\b([^;>|]*)", line) for line in code(page)]
    return [(match[1], shlex.split(re.sub(r"\$seed|SEED", "0", match[2]))) for match in found if match]


def anchors(page: Path) -> set[str]:
    """The anchors that a Git host gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text):
        if not link.startswith("https://"):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.fixture
def beside_plugins(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For the page about plug-ins, be in a folder with those that it shows."""
    if page.name == "extending.md":
        plugins(tmp_path)
        monkeypatch.chdir(tmp_path)
    with registry.restored():
        yield


@page
@pytest.mark.usefixtures("beside_plugins")
def test_commands_are_understood_as_they_are_written(page: Path) -> None:
    for verb, words in commands(page):
        if verb == "help":
            assert set(words) <= {*COMMANDS, "COMMAND"}
            continue
        assert verb in COMMANDS
        if words:  # a name alone speaks of the command
            PARSERS[verb](words)  # ConfigError for what it does not understand


@page
def test_every_command_block_is_run_by_make_documented(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    if name in documented.PAGES:
        assert list(documented.steps(name))  # a shell understands each
    else:
        assert not {"", "python"} & {language for language, _ in documented.blocks(name)}


def test_what_is_shortened_or_left_out_is_still_in_the_documents() -> None:
    lines = [line.partition("  #")[0].rstrip() for page in PAGES for line in page.read_text("utf-8").splitlines()]
    marks = {*documented.MARKS["shortened"], *documented.MARKS["left out"]}
    assert marks - {*lines} == set()
    assert {*documented.MARKS["before"]} <= {*documented.PAGES}


def test_readme_shows_every_command() -> None:
    assert {verb for verb, _ in commands(ROOT / "README.md")} == {*COMMANDS, "help"}


@page
def test_keys_and_targets_of_make_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    sections = {key.partition(".")[0] for key in KEYS}
    for line in code(page):
        assert set(re.findall(r"(?<!\S)--([a-z]+\.\w+)", line)) <= {*KEYS, "algorithm.trace"}, line  # smooth.py's
        assert set(re.findall(r"\bmake ([a-z-]+)", line)) <= targets, line
        section, _, key = line.partition(".")
        if section in sections and key.isidentifier() and key not in ("py", "sbatch"):
            assert line in KEYS


def test_what_is_not_understood_is_noticed(tmp_path: Path) -> None:
    """The tests above can fail."""
    wrong = tmp_path / "page.md"
    wrong.write_text("```\ndba3c record runs/x --fps 3   # no such option\n```\n`dba3c pack`\n", encoding="utf-8")
    assert commands(wrong) == [("record", ["runs/x", "--fps", "3"]), ("pack", [])]
    with pytest.raises(loading.ConfigError):
        test_commands_are_understood_as_they_are_written(wrong)
    wrong.write_text("[x](y.md)", encoding="utf-8")
    with pytest.raises(AssertionError):
        test_links_lead_somewhere(wrong)


def test_readme_is_a_page() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("sentence", STIFF)
def test_stiff_sentences_are_gone(sentence: str) -> None:
    for path in PAGES + COMMENTED:
        text = re.sub(r"[\s#]+", " ", path.read_text(encoding="utf-8"))  # wherever the lines are broken
        assert sentence.lower() not in text.lower(), path


def test_readme_shows_the_panel_as_it_is() -> None:
    shares = {"env": 0.40, "predict": 0.25, "play": 0.0, "sample": 0.0, "gradient": 0.21, "wait": 0.06, "apply": 0.04}
    figures = {f"{part}_share": share for part, share in shares.items()} | {
        "steps_per_second": 1677.8, "seconds_left": 4713.0, "online_score": 1.9, "slowest_rank": 1, "dropped": 0,
        "lag": 0.0, "policy_loss": 0.012, "value_loss": 0.094, "entropy": 1.21, "gradient_norm": 0.37,
    }  # fmt: skip
    display = Display(loading.load("fast"), ["laptop", "laptop"], terminal=None)
    output = io.StringIO()
    console = Console(file=output, width=88, force_terminal=True, color_system="truecolor")
    console.print(display._panel(figures, Progress(updates=1161, steps=92_880, seconds=74.0)))
    assert re.sub(r"\x1b\[[\d;]*m", "", output.getvalue()) in README


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == dba3c.__version__


def test_the_changelog_begins_with_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == dba3c.__version__
