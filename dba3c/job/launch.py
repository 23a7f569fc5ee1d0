"""Start the ranks of a job on this machine: mpirun with the right options, and signals that let the ranks save."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dba3c.config.messages import ConfigError
from dba3c.job import cores
from dba3c.job.exit import CODE_FILE, CODES, EXIT_ERROR, EXIT_STOPPED
from dba3c.job.process import RANKS_OF_MPIRUN, TERMINAL, ensure_home, say
from dba3c.job.signals import STOP_SIGNALS
from dba3c.job.single_host import single_host

ALLOW_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # as containers need it
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1"}  # ranks that wait leave the core
EXPLAINED = (b"exited with non-zero status", b"MPI_ABORT was invoked", b"User defined signal 1")  # ranks said why
OUT_OF_MEMORY = (
    "dba3c: the kernel has killed a rank because memory ran out; try fewer simulators (--env.n_sim) or fewer ranks, or"
    " give the job more memory; the same command resumes from the last save"
)
NOTHING_LOST = "nothing was lost"  # as ranks say that are asked to stop before training began
GONE = b"PMIX ERROR: PMIX_ERR_UNREACH"  # mpirun could not reach a rank that had left
DEAF = signal.SIGUSR1, 128 + signal.SIGUSR1  # mpirun, or a rank, did not listen to signals yet
KILLED = 128 + signal.SIGKILL  # mpirun's code if a rank was
RULE = b"-" * 60
MOST_LINES = 40  # of one of mpirun's own messages
PR_SET_PDEATHSIG = 1


def mpirun() -> str:
    """Find the launcher of this environment, or the site's."""
    found = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        raise ConfigError(
            "no mpirun was found; install one with pip install 'dba3c[mpi]' or load your site's MPI module"
        )
    return found


def is_open_mpi(launcher: str) -> bool:
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    return any(name in version for name in ("Open MPI", "OpenRTE", "PRRTE"))


def options(ranks: int, open_mpi: bool) -> list[str]:
    """Write mpirun's options for ranks of this machine.

    Ranks are not bound: they share the cores fairly, and a second job would be bound to the same ones. There may be
    more of them than cores, or than a Slurm allocation has tasks.
    """
    return ["-np", str(ranks), *(["--bind-to", "none", "--oversubscribe"] if open_mpi else [])]


def is_rank() -> bool:
    """Whether a launcher started this process as one of its ranks; a shell in a Slurm step of one task is none."""
    return any(name in os.environ for name in RANKS_OF_MPIRUN) or os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"


def launch(ranks: int, module: str, argv: list[str]) -> int:
    """Run a module of this package on ranks of this machine; return the exit code that the ranks agree on."""
    ensure_home()
    launcher = mpirun()
    has = len(cores.place("").cores)
    words = [launcher, *options(ranks, is_open_mpi(launcher)), sys.executable, "-m", module, *argv]
    with tempfile.TemporaryDirectory(prefix="dba3c-") as folder, own_foreground():
        code_file = Path(folder) / "code"
        environment = single_host(os.environ, ranks) | ALLOW_ROOT | {CODE_FILE: str(code_file)}
        environment |= YIELD if ranks > has else {}
        environment |= {TERMINAL: os.ttyname(2)} if os.isatty(2) else {}
        killed_before = oom_kills()
        process = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,  # Ctrl-C reaches this process only: mpirun would kill its ranks before they have saved
            preexec_fn=end_with_parent,  # noqa: PLW1509 (this process has one thread)
        )
        stop = Forwarding(process)
        explained = show(process)
        code = process.wait()
        stop.close()
        noted = None
        with suppress(OSError, ValueError):
            noted = int(code_file.read_text(encoding="ascii"))
    if stop.asked and abs(code) in DEAF and not explained:
        say(f"dba3c: stopped before training began; {NOTHING_LOST}")
    if code == KILLED and oom_kills() > killed_before:
        say(OUT_OF_MEMORY)
    return known(code, noted, stop.asked)


def oom_kills(statistics: Path = Path("/proc/vmstat")) -> int:
    """Count the processes of this host that the kernel has killed since boot because memory ran out; 0 if unknown."""
    with suppress(OSError, ValueError):
        for line in statistics.read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def known(code: int, noted: int | None, asked: bool) -> int:
    """Return the ranks' own code, where mpirun was killed or has one that says less."""
    code = 128 - code if code < 0 else code
    if code in CODES and code != EXIT_ERROR:
        return code
    if noted is not None and (
        asked or code != KILLED
    ):  # mpirun ends the others with SIGTERM, which they note as a stop
        return noted
    return EXIT_STOPPED if asked and code in DEAF else code


class Forwarding:
    """Asks the ranks to save and end when this process is asked to; a second time, a second later or more, at once."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._first: float | None = None
        self._before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        for number, handler in self._before.items():
            if handler is not signal.SIG_IGN:  # nohup ignores SIGHUP, and means it
                signal.signal(number, self._receive)

    @property
    def asked(self) -> bool:
        return self._first is not None

    def close(self) -> None:
        """Handle signals as before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, _number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            self._process.send_signal(signal.SIGUSR1)  # which mpirun passes on, and lives
        elif now - self._first > 1:
            self._process.send_signal(signal.SIGTERM)  # after which mpirun kills its ranks


def end_with_parent() -> None:
    """Have the kernel end mpirun if this process is killed, so that no job goes on unseen."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def show(process: subprocess.Popen[bytes]) -> bool:
    """Pass on what the ranks write; output that cannot be written is dropped, and training continues.

    Return whether they have said that nothing was lost.
    """
    assert process.stderr is not None
    explained = False
    for line in without_boxes(process.stderr):
        explained = explained or NOTHING_LOST.encode() in line
        with suppress(OSError, ValueError):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
    return explained


def without_boxes(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Drop mpirun's messages between two rules about ranks that have said themselves why they end."""
    box: list[bytes] = []
    for line in lines:
        if not box and not line.startswith(RULE):
            if GONE not in line:
                yield line
            continue
        box.append(line)
        if (len(box) > 1 and line.startswith(RULE)) or len(box) > MOST_LINES:
            yield from unexplained(box)
            box = []
    yield from unexplained(box)


def unexplained(box: list[bytes]) -> list[bytes]:
    text = b" ".join(b"".join(box).split())  # wherever the lines are broken
    return [] if any(words in text for words in EXPLAINED) else box


@contextmanager
def own_foreground() -> Iterator[None]:
    """Under make, take the terminal: Ctrl-C is for the training, and make would call it an error."""
    if "MAKELEVEL" not in os.environ or not os.isatty(0) or os.tcgetpgrp(0) != os.getpgrp():
        yield
        return
    group = os.getpgrp()
    for number in (signal.SIGTTOU, signal.SIGTSTP):  # a shell that waits for make could not wake us
        signal.signal(number, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    try:
        yield
    finally:
        os.tcsetpgrp(0, group)
