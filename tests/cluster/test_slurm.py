"""The trainer under a real Slurm: four nodes, their own networks and names, PMIx between them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import dba3c
from dba3c.job.exit import EXIT_BAD_INPUT
from tests.cluster import slurm
from tests.cluster.commands import EXACT, TRAIN, ended, sbatch, srun, wait_for
from tests.fakes import real_jobs

pytestmark = pytest.mark.usefixtures("cluster")


class Run(NamedTuple):
    folder: Path
    result: real_jobs.Result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A training on four hosts whose weights are compared after every update."""
    folder = tmp_path_factory.mktemp("undisturbed")
    options = (*EXACT, "--comm.check_every_updates=1", "--evaluate.max_frames=400")
    return Run(folder, srun(*TRAIN, f"--run-dir={folder}", *options))


def test_four_hosts_train_as_one(undisturbed: Run) -> None:
    result = undisturbed.result
    assert result.code == 0, result.output
    assert real_jobs.summary(undisturbed.folder)["ranks"] == 4  # which have equal weights, or the last check had failed
    assert "4           1" in result.output, result.output  # hosts, ranks each
    assert "node1, node2, node3, node4" in result.output
    assert result.output.count("done after 100 updates") == 1


def test_asynchronous_hosts_have_equal_weights_wherever_they_meet(tmp_path: Path) -> None:
    """Every host owns a slice; the job would not end with 0 if a comparison of the weights found a difference."""
    options = ("--comm.strategy=server", "--comm.check_every_updates=10", "--train.total_steps=1600")
    result = srun(*TRAIN, f"--run-dir={tmp_path}", *options)
    assert result.code == 0, result.output
    summary = real_jobs.summary(tmp_path)
    assert (summary["ranks"], summary["steps"], summary["updates"]) == (4, 1600, 200)
    assert max(summary["staleness_by_rank"]) > 0


def test_one_worker_with_servers_on_three_hosts_equals_one_rank_also_after_a_kill(tmp_path: Path) -> None:
    """Bit for bit: slices change nothing, and a resumed run has the state of the last meeting."""
    options = ("--checkpoint.restart_games=true", "--checkpoint.every_updates=5", "--train.total_steps=400")
    one_core = ["taskset", "--cpu-list", "0"]  # as many as each rank on the nodes has: threads add up in another order
    alone = real_jobs.run_words([*one_core, *TRAIN, f"--run-dir={tmp_path / 'alone'}", *options])
    assert alone.code == 0, alone.output
    folder = tmp_path / "served"
    servers = ("--comm.strategy=server", "--comm.servers=3", "--comm.dedicated=true")
    killed = srun("--kill-on-bad-exit", *TRAIN, f"--run-dir={folder}", *options, *servers, DBA3C_FAULT="3:38:kill")
    assert killed.code != 0, killed.output
    resumed = srun(*TRAIN, f"--run-dir={folder}", *options, *servers)
    assert resumed.code == 0, resumed.output
    assert "at update 35," in resumed.output, resumed.output
    assert real_jobs.summary(folder)["weight_hash"] == real_jobs.summary(tmp_path / "alone")["weight_hash"]


@pytest.mark.parametrize("mpi", ["none", "pmi2"])
def test_without_pmix_four_singletons_are_refused(tmp_path: Path, mpi: str) -> None:
    result = srun(*TRAIN, f"--run-dir={tmp_path / 'run'}", mpi=mpi)
    assert result.code == EXIT_BAD_INPUT, result.output
    assert result.output.count("use srun --mpi=pmix") == 1, result.output
    assert not (tmp_path / "run").exists()


def test_a_job_that_is_stopped_goes_back_into_the_queue_and_ends_the_same(tmp_path: Path, undisturbed: Run) -> None:
    log = tmp_path / "log"
    job = sbatch("train.sbatch", log, *real_jobs.TINY, *EXACT, RUN_DIR=str(tmp_path))
    wait_for(lambda: len(list(tmp_path.glob("checkpoints/*.npz"))) >= 2, log)
    assert slurm.command("scancel", "--signal=USR1", job).returncode == 0
    wait_for(lambda: ended(job), log)
    text = log.read_text(encoding="utf-8")
    assert text.count("back into the queue") == 1, text
    assert f"resuming {tmp_path} at update" in text
    summary = real_jobs.summary(tmp_path)
    assert (summary["ranks"], summary["updates"]) == (4, 100)
    assert summary["weight_hash"] == real_jobs.summary(undisturbed.folder)["weight_hash"]


def test_under_mpirun_a_job_that_is_stopped_goes_back_into_the_queue_too(tmp_path: Path) -> None:
    log, launcher = tmp_path / "log", f"{Path(sys.executable).parent}/mpirun"
    variables = {"RUN_DIR": str(tmp_path), "LAUNCH": launcher}
    job = sbatch("train.sbatch", log, *real_jobs.TINY, "--train.total_steps=9600", **variables)
    wait_for(lambda: len(list(tmp_path.glob("checkpoints/*.npz"))) >= 2, log)
    assert slurm.command("scancel", "--signal=USR1", "--batch", job).returncode == 0  # as Slurm does before the limit
    wait_for(lambda: ended(job), log)
    text = log.read_text(encoding="utf-8")
    assert text.count("exit code 75; back into the queue") == 1, text
    assert f"resuming {tmp_path} at update" in text
    assert real_jobs.summary(tmp_path)["steps"] >= 9600


def test_a_rank_with_another_configuration_is_named(tmp_path: Path) -> None:
    common = f"{' '.join(TRAIN)} --run-dir={tmp_path / 'run'}"
    (tmp_path / "programs").write_text(f"0-2 {common}\n3 {common} --algorithm.gamma=0.9\n", encoding="utf-8")
    result = srun("--multi-prog", str(tmp_path / "programs"))
    assert result.code == EXIT_BAD_INPUT, result.output
    assert result.output.count("dba3c: ") == 1, result.output
    assert "algorithm.gamma: 0.99 on ranks 0-2, 0.9 on rank 3 (node4)" in result.output
    assert not (tmp_path / "run").exists()


def test_a_rank_with_another_version_is_named(tmp_path: Path) -> None:
    real_jobs.other_version(tmp_path)
    (tmp_path / "stranger.sh").write_text(f"cd {tmp_path}; exec {' '.join(TRAIN)}", encoding="utf-8")
    programs = f"0-2 {' '.join(TRAIN)}\n3 sh {tmp_path / 'stranger.sh'}\n"
    (tmp_path / "programs").write_text(programs, encoding="utf-8")
    result = srun("--multi-prog", str(tmp_path / "programs"))
    assert result.code == EXIT_BAD_INPUT, result.output
    assert f"the ranks differ in dba3c: {dba3c.__version__} on ranks 0-2, 9.{dba3c.__version__} on rank 3 (node4)" in (
        result.output
    )


def test_an_evaluation_shared_by_nodes(tmp_path: Path, undisturbed: Run) -> None:
    log = tmp_path / "log"
    job = sbatch("evaluate.sbatch", log, "--games", "5", RUN_DIR=str(undisturbed.folder))
    wait_for(lambda: ended(job), log)
    content = json.loads((undisturbed.folder / f"evaluation-{job}.json").read_text(encoding="utf-8"))
    assert len(content["scores"]) == 5
    assert "greedy episodes" in log.read_text(encoding="utf-8")


def test_a_sweep_is_a_job_array_that_the_same_command_resumes(tmp_path: Path) -> None:
    """It is cancelled on its way; when all trainings have ended, nothing is left to submit."""
    plan, runs = tmp_path / "plan.yaml", tmp_path / "runs"
    small = {name: value for name, _, value in (word.removeprefix("--").partition("=") for word in real_jobs.TINY[2:])}
    values = {"games": ["breakout", "pong"], "seeds": 2, "ranks": 2, "preset": "a2c"}
    plan.write_text(json.dumps(values | {"common": small | {"train.total_steps": 1600}}), encoding="utf-8")
    words = (sys.executable, "-m", "dba3c.sweep", str(plan), f"--out={runs}", "--slurm", "--jobs=2")
    first = submitted_array(words)
    log = runs / "logs" / "task-0.log"
    wait_for(lambda: len(list(runs.glob("breakout-0/checkpoints/*.npz"))) >= 1, log)
    assert slurm.command("scancel", first).returncode == 0
    wait_for(lambda: ended(first), log)
    second = submitted_array(words)
    names = ("breakout-0", "breakout-1", "pong-0", "pong-1")
    for name in names:  # two at a time, on a machine that pretends to have more cores than it has
        wait_for((runs / name / "summary.json").is_file, log)
    wait_for(lambda: ended(second), log)
    found = {name: real_jobs.summary(runs / name) for name in names}
    assert {name: summary["ranks"] for name, summary in found.items()} == dict.fromkeys(names, 2)
    assert all(summary["steps"] >= 1600 for summary in found.values())
    assert "resuming" in log.read_text(encoding="utf-8")
    again = slurm.command(*words)
    assert (again.returncode, again.stderr.count("all 4 trainings have finished")) == (EXIT_BAD_INPUT, 1), again


def submitted_array(words: tuple[str, ...]) -> str:
    """The number of the job array that a sweep submits."""
    result = slurm.command(*words)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()[3].rstrip(":")


def test_scaling_leaves_a_table_and_a_picture(tmp_path: Path) -> None:
    log = tmp_path / "log"
    small = ("--seconds", "0.2", "--preset", "a2c", "--env.n_sim=2", "--model.hidden=16")
    job = sbatch("scaling.sbatch", log, *small, OUT=str(tmp_path / "out"))
    wait_for(lambda: ended(job), log)
    text = log.read_text(encoding="utf-8")
    assert "efficiency" in text, text
    rows = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["rows"]
    assert [row["hosts"] for row in rows if row["scaling"] == "weak"] == [1, 2, 4]
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
