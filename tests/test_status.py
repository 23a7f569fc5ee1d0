"""status: a line for each run, whatever became of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dba3c.reporting import status
from dba3c.run_files.directory import LogFile, prepare_directory
from dba3c.status import main
from tests.fakes.made_up_runs import ended, row, write_run

STEPS = ("train.total_steps=100000",)
BEGUN = "  5.0 s  training begins; the first update takes longer"


def run_with_log(path: Path, *messages: str, rows: int = 5) -> Path:
    """A run of 100 000 steps that has said this, and that nobody works on."""
    run = write_run(path, [row(n) for n in range(1, rows + 1)], overrides=STEPS)
    prepare_directory(run).close()
    for message in messages:
        LogFile(run).write(message)
    return run


def state(path: Path) -> str:
    (run,) = status.look([path])
    return run.state


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((BEGUN,), "failed"),  # it was killed
        ((BEGUN, "stopped by a signal to rank 0 on a after 5 updates, 40 steps; saved in x"), "stopped"),
        ((BEGUN, "stopped by a signal to rank 0", "resuming x at update 5, step 40, with new episodes"), "failed"),
        ((BEGUN, "gave up after 5 updates, 40 steps: gradients were not finite"), "failed"),
        ((BEGUN, "done after 5 updates, 40 steps; results in x"), "finished"),
        ((BEGUN, "target score 20.0 reached after 5 updates"), "finished"),
        ((), "failed"),
    ],
)
def test_the_log_says_how_a_run_ended(tmp_path: Path, messages: tuple[str, ...], expected: str) -> None:
    assert state(run_with_log(tmp_path / "run", *messages)) == expected


def test_a_run_is_running_while_its_lock_is_held(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", BEGUN)
    lock = prepare_directory(run)
    assert state(run) == "running"
    lock.close()
    assert state(run) == "failed"


def test_a_job_on_another_host_is_judged_by_its_last_line(tmp_path: Path) -> None:
    run = run_with_log(tmp_path / "run", BEGUN)
    (run / "lock").write_text("process 7 on elsewhere\n", encoding="utf-8")
    assert state(run) == "running"
    for name in ("metrics.csv", "log.txt"):
        os.utime(run / name, (1e9, 1e9))
    assert state(run) == "failed"


def test_exported_logs_are_judged_by_their_summary(tmp_path: Path) -> None:
    rows = [row(n) for n in range(1, 11)]
    assert state(write_run(tmp_path / "all", rows, ended(rows), STEPS)) == "finished"
    assert state(write_run(tmp_path / "target", rows[:5], ended(rows[:5], target_reached=True), STEPS)) == "finished"
    assert state(write_run(tmp_path / "part", rows[:5], ended(rows[:5]), STEPS)) == "stopped"


def test_a_line_for_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with_log(tmp_path / "runs" / "one", BEGUN)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.yaml").write_text("nonsense", encoding="utf-8")
    (tmp_path / "runs" / "scaling-7.json").touch()
    lock = prepare_directory(run)
    assert main([]) == 0
    lock.close()
    _, head, _, broken, one = (line.split() for line in capsys.readouterr().out.splitlines()[:5])
    assert head[:4] == ["run", "game", "preset", "state"]
    assert broken[:4] == ["broken", "–", "–", "unreadable"]
    assert one[:9] == ["one", "breakout", "a2c", "+1", "running", "50,000", "of", "100,000", "50%"]
    assert one[9:14] == ["10.0", "(online)", "1,000", "0:00:50", "0:00:00"]


def test_where_there_is_no_run_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("dba3c: there is no run directory")
