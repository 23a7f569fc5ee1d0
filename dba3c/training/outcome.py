"""What a run says when it ends: its last line and summary.json."""

from __future__ import annotations

import resource
from pathlib import Path

from dba3c.config.schema import Config
from dba3c.job.exit import EXIT_NOT_FINITE, EXIT_NOT_SAVED, EXIT_STOPPED
from dba3c.learning.agent import Agent
from dba3c.run_files.logs import read_summary
from dba3c.run_files.progress import Progress
from dba3c.training.ranks import Ranks
from dba3c.training.state import weight_hash
from dba3c.types import Json


def last_line(code: int, config: Config, progress: Progress, run_dir: Path, who: dict[str, str]) -> str:
    """Say how the run ended; `who` names the ranks that were asked to `stop`, were `not_finite`, and should `save`."""
    where = f"after {progress.updates:,} updates, {progress.steps:,} steps"
    if code == EXIT_STOPPED:
        saved = "the last regular save is" if config.checkpoint.restart_games else "saved"
        return f"stopped by a signal to {who['stop']} {where}; {saved} in {run_dir}; rerun the same command to resume"
    if code == EXIT_NOT_FINITE:
        bad = f"gradients of {who['not_finite']} were not finite in {progress.bad_in_a_row} updates in a row"
        return f"gave up {where}: {bad}; the last good weights are saved in {run_dir}"
    if code == EXIT_NOT_SAVED:
        return (
            f"{who['save']} could not save the final state, {where}: updates after the last save in {run_dir} are lost"
        )
    limit = config.train.max_minutes
    done = f"time limit of {limit:g} minutes reached" if 0 < limit <= progress.seconds / 60 else "done"
    reached = f"target score {config.target_score} reached" if progress.target_reached else done
    return f"{reached} {where}; results in {run_dir}"


def summary(config: Config, progress: Progress, ranks: Ranks, agent: Agent) -> Json:
    """Collect what summary.json begins with; every rank must take part."""
    memory = ranks.transport.gather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    return {
        "game": config.env.game,
        "steps": progress.steps,
        "updates": progress.updates,
        "seconds": progress.seconds,
        "ranks": ranks.world.size,
        "lost_ranks": ranks.failed,
        "cores": ranks.world.cores,
        "threads": ranks.world.threads,
        "parameters": agent.layout.total,
        "weight_hash": weight_hash(agent.weights.numpy()),
        "evaluation_score": progress.evaluation_score,
        "evaluation_games": progress.evaluation_games,
        "evaluation_policy": config.evaluate.policy,
        "evaluation_sticky": config.evaluation_sticky,
        "evaluation_starts": config.evaluate.starts,
        "evaluation_scores": progress.evaluation_scores,
        "evaluation_cut": progress.evaluation_cut,
        "best_score": progress.best_score,
        "reached_in_a_row": progress.reached_in_a_row,
        "target_reached": progress.target_reached,
        "skipped": progress.skipped,
        "memory_mb_per_rank": max(memory),
    }


def was_written(run_dir: Path, progress: Progress) -> bool:
    """Whether summary.json is of this very end; a job may have been killed after its last save and before that."""
    try:
        return bool(read_summary(run_dir / "summary.json").get("updates") == progress.updates)
    except (OSError, ValueError):
        return False
