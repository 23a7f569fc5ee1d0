"""What there is to say when a run ends."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

from dba3c.comm.weight_check import weight_hash
from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_STOPPED
from dba3c.learning.agent import Agent
from dba3c.run_files.logs import read_summary
from dba3c.training.ranks import Crew
from dba3c.types import Progress


def last_words(code: int, config: Config, progress: Progress, run_dir: Path, who: dict[str, str]) -> str:
    """One line; `who` names the ranks that were asked to `stop`, were `not_finite`, and should `save`."""
    where = f"after {progress.updates:,} updates, {progress.steps:,} steps"
    if code == EXIT_STOPPED:
        saved = "goes on from the last regular save" if config.checkpoint.restart_games else "goes on from there; saved"
        return f"stopped by a signal to {who['stop']} {where}; the same command {saved} in {run_dir}"
    if code == EXIT_NOT_FINITE:
        bad = f"gradients of {who['not_finite']} were not finite in {progress.bad_in_a_row} updates in a row"
        return f"gave up {where}: {bad}; the last good weights are saved in {run_dir}"
    if code == EXIT_NOT_SAVED:
        return f"{who['save']} could not save the end, {where}: what came after the last save in {run_dir} is lost"
    reached = f"target score {config.target_score} reached" if progress.target_reached else "done"
    return f"{reached} {where}; results in {run_dir}"


def summary(config: Config, progress: Progress, crew: Crew, agent: Agent) -> dict[str, Any]:
    """What summary.json begins with; every rank must ask."""
    memory = crew.transport.gather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    return {
        "game": config.env.game,
        "steps": progress.steps,
        "updates": progress.updates,
        "seconds": progress.seconds,
        "ranks": crew.world.size,
        "lost_ranks": crew.lost,
        "cores": crew.world.cores,
        "threads": crew.world.threads,
        "parameters": agent.layout.total,
        "weight_hash": weight_hash(agent.weights.numpy()),
        "evaluation_score": progress.evaluation_score,
        "best_score": progress.best_score,
        "target_reached": progress.target_reached,
        "skipped": progress.skipped,
        "memory_mb_per_rank": max(memory),
    }


def was_told(run_dir: Path, progress: Progress) -> bool:
    """The summary of this very end is there; a job may have been killed after its last save and before that."""
    try:
        return bool(read_summary(run_dir / "summary.json").get("updates") == progress.updates)
    except (OSError, ValueError):
        return False
