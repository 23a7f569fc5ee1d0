"""Run every command block and every example of README and docs, line by line, in a fresh clone, shell and environment.

python -m tests.end_to_end.documented [--folder FOLDER] [PAGE …]      (make documented)

documented.yaml marks the lines that are shortened or left out, with the reason; all others run as they are written.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.cluster import slurm

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "running", "python", "extending", "environments", "scaling", "failures", "claims", "large-batch", "cluster",
)), "CONTRIBUTING.md"]  # fmt: skip
MARKS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
KEPT = ("PIP_", "PYENV_", "SSL_CERT", "http_proxy", "https_proxy", "no_proxy")  # what a login shell here has, too
STEP = """step() {{
  local start=$EPOCHREALTIME
  eval "$2" > {logs}/$1 2>&1 < /dev/null
  echo "$1 $? $start $EPOCHREALTIME" >&3
}}"""  # in the shell itself: a cd or an activated environment stays
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """A command as the page has it, and as it is run; nothing is run for an empty one."""

    written: str
    run: str
    remark: str = ""


class Outcome(NamedTuple):
    step: Step
    code: int
    seconds: float


def blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a page: language and text. Commands have no language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(language, body) for _, language, body in BLOCK.findall(text)]


def files(page: str) -> dict[str, str]:
    """The files that a page shows, with their names in a comment of the first line."""
    found = {}
    for language, body in blocks(page):
        name = re.search(r"# (\w+\.(?:py|yaml))", body.partition("\n")[0])
        if language in ("python", "yaml") and name:
            found[name[1]] = "".join(f"{shortened(line)}\n" for line in body.splitlines())
    return found


def shortened(line: str) -> str:
    """A line without its comment, as it is run."""
    plain = line.partition("  #")[0].rstrip()
    return str(MARKS["shortened"].get(plain, plain))


def steps(page: str) -> Iterator[Step]:
    """The commands and examples of a page in their order, after what it takes for granted."""
    for line in MARKS["before"].get(page, []):
        yield Step(line, line, "taken for granted")
    for number, (language, body) in enumerate(blocks(page)):
        if language == "python" and not re.match(r"# \w+\.py", body):
            example = f"cat > example-{number}.py <<'EOF'\n{body}EOF\npython example-{number}.py"
            yield Step(f"the example that begins with: {body.splitlines()[0]}", example)
        elif not language:
            for command in complete(body.splitlines()):
                yield marked(command)


def complete(lines: list[str]) -> Iterator[list[str]]:
    """Put together the lines that a shell reads as one command."""
    command: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        command.append(line.partition("  #")[0].rstrip())
        if not command[-1].endswith("\\") and is_complete("\n".join(command)):
            yield command
            command = []
    if command:
        raise ValueError(f"no shell understands {command}")


def is_complete(text: str) -> bool:
    return subprocess.run(["bash", "-nc", text], capture_output=True, check=False).returncode == 0


def marked(lines: list[str]) -> Step:
    """A command as documented.yaml has it run."""
    written, run = "\n".join(lines), "\n".join(map(shortened, lines))
    if reason := MARKS["left out"].get(written):
        return Step(written, "", f"left out: {reason}")
    return Step(written, run, "" if run == written else "shortened")


def session(page: str, folder: Path, first: str = "") -> list[Outcome]:
    """Follow a page in one shell: from the clone on, or in README's clone with its environment activated.

    Begin with the first command that contains `first`.
    """
    logs = folder / "logs" / page.replace("/", "-")
    logs.mkdir(parents=True, exist_ok=True)
    todo = list(steps(page))
    todo = todo[next((number for number, step in enumerate(todo) if first in step.written), 0) :]
    clones = any(step.written.startswith("git clone") for step in todo)
    place = folder / "again" if clones and (folder / "dba3c").exists() else folder
    place.mkdir(exist_ok=True)
    script = [
        STEP.format(logs=logs),
        "" if clones else f"cd dba3c && cp {folder}/files/* . && source .venv/bin/activate",
    ]
    script += [f"step {number} {shlex.quote(step.run)}" for number, step in enumerate(todo) if step.run]
    with (logs / "results").open("w", encoding="utf-8") as out:
        subprocess.run(
            ["bash", "--norc", "--noprofile", "-c", f"exec 3>&{out.fileno()}\n" + "\n".join(script)],
            cwd=place, env=environment(folder), pass_fds=[out.fileno()], check=False,
        )  # fmt: skip
    lines = (logs / "results").read_text(encoding="utf-8").splitlines()
    rows = {int(row[0]): row[1:] for row in map(str.split, lines)}
    return [outcome(step, rows.get(number)) for number, step in enumerate(todo)]


def outcome(step: Step, row: list[str] | None) -> Outcome:
    if row is None:  # left out; or the shell did not get there
        return Outcome(step, -1 if step.run else 0, 0.0)
    return Outcome(step, int(row[0]), float(row[2]) - float(row[1]))


def environment(folder: Path) -> dict[str, str]:
    """What a new login has, as far as it matters: no environment of ours, an empty home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    ours = {str(Path(sys.prefix) / "bin"), str(ROOT / ".venv" / "bin")}
    path = [place for place in os.environ["PATH"].split(":") if place not in ours]
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    kept |= {"REPOSITORY": str(ROOT), "FILES": str(folder / "files")}  # which documented.yaml names
    if (settings := Path.home() / ".config" / "pip" / "pip.conf").is_file():
        kept["PIP_CONFIG_FILE"] = str(settings)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    # docs/running.md says what more ranks than cores need; README's four ranks shall run on two cores, too.
    few = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_mpi_yield_when_idle": "1"}
    return kept | root | few | {"HOME": str(home), "PATH": ":".join([str(folder / "bin"), *path]), "LANG": "C.UTF-8"}


def needs_cluster(page: str) -> bool:
    return any(re.search(r"\bsbatch\b|\bsrun\b|--slurm", step.run) for step in steps(page))


def offer_cluster(folder: Path) -> None:
    """Put sbatch, which waits for its job, and srun on the path: those of a cluster of network namespaces."""
    (folder / "bin").mkdir(exist_ok=True)
    ours = {name: value for name, value in slurm.environment().items() if name.startswith(("SLURM_", "OMPI_", "PRTE_"))}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in ours.items())
    for name, more in (("sbatch", ["--wait"]), ("srun", [])):
        real = shutil.which(name)
        assert real is not None
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\n{exports}exec {shlex.join(slurm.as_user(real, *more))} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


def show(page: str, outcomes: list[Outcome], folder: Path) -> int:
    """Print what became of a page; return how many commands failed."""
    failed = 0
    for number, (step, code, seconds) in enumerate(outcomes):
        state = "left out" if not step.run else "ok" if code == 0 else f"FAILED ({code})"
        failed += state.startswith("FAILED")
        print(f"{state:11} {seconds:6.1f} s  {page}: {step.written}" + (f"   [{step.remark}]" if step.remark else ""))
        if step.remark == "shortened":
            print(" " * 22 + step.run)
        if state.startswith("FAILED"):
            log = folder / "logs" / page.replace("/", "-") / str(number)
            print(log.read_text(encoding="utf-8", errors="replace")[-3000:] if log.exists() else "not reached")
    sys.stdout.flush()
    return failed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="documented", description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, help=f"of {', '.join(PAGES)} (default: all)")
    parser.add_argument("--folder", type=Path, help="where README puts its clone, or has put it; else a temporary one")
    parser.add_argument("--first", default="", metavar="TEXT", help="begin each page with the command that contains it")
    options = parser.parse_args(argv)
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="dba3c-documented-"))).resolve()
    (folder / "files").mkdir(parents=True, exist_ok=True)
    for name, text in [item for page in PAGES for item in files(page).items()]:
        (folder / "files" / name).write_text(text, encoding="utf-8")
    cluster = slurm.why_not() is None and any(needs_cluster(page) for page in options.pages)
    if cluster:
        slurm.up()
        offer_cluster(folder)
    try:
        failed = sum(show(page, session(page, folder, options.first), folder) for page in options.pages)
    finally:
        if cluster:
            slurm.down()
    print(f"{failed} commands failed; output of each in {folder}/logs")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
