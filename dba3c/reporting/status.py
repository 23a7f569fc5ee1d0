"""What becomes of runs: how far each is, whether anybody still trains there, and when it last said something."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from typing import NamedTuple

from dba3c.config.comparison import GAME_AND_SEED, recipe
from dba3c.config.messages import ConfigError
from dba3c.reporting.groups import pace_curve
from dba3c.reporting.tables import NOTHING, Rows
from dba3c.run_files import logs
from dba3c.run_files.directory import last_messages, lock_host, locked_here
from dba3c.run_files.display import duration, rough_duration
from dba3c.run_files.logs import RunLog

SILENT_SECONDS = 300.0  # after which a job on another host, whose lock cannot be seen from here, counts as dead
HEAD = ["run", "game", "preset", "state", "steps", "done", "score", "steps/s", "time left", "last line"]
ENDINGS = (  # of messages in log.txt → state; the last one that is found counts
    (r"(resuming .* at update|training begins)", "failed"),  # unless something else follows
    (r"stopped by a signal|asked to stop", "stopped"),
    (r"(gave up|.* could not save the final state)", "failed"),
    (r"(nothing to do: )?(done|target score .* reached) after", "finished"),
)


class Run(NamedTuple):
    """A run directory, and what could be read there."""

    path: Path
    log: RunLog | None  # None if it cannot be read, or if the first row is not yet written
    state: str  # running, finished, stopped, failed, or unreadable
    age: float | None  # seconds since the last line in any of its files


def look(paths: list[Path]) -> list[Run]:
    """Look at run directories; ConfigError if there is none among the paths."""
    found = [path for path in paths if (path / "config.yaml").is_file() or (path / "lock").is_file()]
    if not found:
        raise ConfigError("there is no run directory; name some that dba3c train has written, such as runs/*")
    return [look_at(path, name) for path, name in zip(found, logs.short_names(found), strict=True)]


def look_at(path: Path, name: str) -> Run:
    age = age_of(path)
    try:
        log = logs.read_one(path, name)
    except ConfigError:
        return Run(path, None, "running" if is_running(path, age) else "unreadable", age)
    return Run(path, log, "running" if is_running(path, age) else ended_as(path, log), age)


def age_of(path: Path) -> float | None:
    """Return how many seconds ago the run last wrote a row or a message."""
    files = [path / name for name in ("metrics.csv", "log.txt") if (path / name).is_file()]
    return max(0.0, time.time() - max(file.stat().st_mtime for file in files)) if files else None


def is_running(path: Path, age: float | None) -> bool:
    """Whether a job holds the lock, as far as that can be seen from this host."""
    if lock_host(path) == socket.gethostname():
        return locked_here(path)
    spoke = age is not None and age < SILENT_SECONDS
    return lock_host(path) is not None and spoke and last_ending(path) in (None, "failed")


def last_ending(path: Path) -> str | None:
    """Return the state that the last telling message in log.txt stands for."""
    for message in reversed(last_messages(path)):
        for pattern, state in ENDINGS:
            if re.search(pattern, message):
                return state
    return None


def ended_as(path: Path, run: RunLog) -> str:
    """Return how a run ended that nobody works on: by its log, or by its summary where only that is kept."""
    if run.ended and (run.summary.get("target_reached") is True or done(run) >= 1):
        return "finished"
    return last_ending(path) or ("stopped" if run.ended else "failed")


def done(run: RunLog) -> float:
    return run.counted("steps") / run.config.train.total_steps


def table(runs: list[Run]) -> Rows:
    return [HEAD, *(row(run) for run in runs)]


def row(run: Run) -> list[str]:
    """Return the cells of one run, in the order of HEAD."""
    age = NOTHING if run.age is None else f"{duration(run.age)} ago"
    if run.log is None:
        return [logs.printable(run.path.name), NOTHING, NOTHING, run.state, *[NOTHING] * 5, age]
    steps, total = run.log.counted("steps"), run.log.config.train.total_steps
    pace = newest_pace(run.log)
    left = rough_duration((total - steps) / pace) if run.state == "running" and pace and total > steps else NOTHING
    return [
        run.log.name,
        run.log.config.env.game,
        preset(run.log),
        run.state,
        f"{steps:,.0f} of {total:,}",
        f"{min(1.0, done(run.log)):.0%}",
        score(run.log),
        NOTHING if pace is None else f"{pace:,.0f}",
        left,
        age,
    ]


def preset(run: RunLog) -> str:
    nearest = recipe(run.config)
    changes = len(set(nearest.overrides) - {*GAME_AND_SEED})
    return nearest.preset + (f" +{changes}" if changes else "")


def newest_pace(run: RunLog) -> float | None:
    """Return steps/s over the newest minute, or over the whole of a short run."""
    paces = pace_curve(run)[1]
    return float(paces[-1]) if len(paces) and paces[-1] > 0 else None


def score(run: RunLog) -> str:
    """Format the newest evaluation or, until there is one, the online score."""
    if run.evaluated is not None:
        policy = run.config.evaluate.policy
        return f"{run.evaluated.score:,.1f}" + (f" ({policy})" if policy != "greedy" else "")
    online = run.newest("online_score")
    return NOTHING if online is None else f"{online:,.1f} (online)"
