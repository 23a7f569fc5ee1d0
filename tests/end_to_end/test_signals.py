"""Signals: a first one is seen at once, a second one ends the process."""

from __future__ import annotations

import signal
import subprocess
import sys


def test_a_signal_calls_at_once_even_while_the_main_thread_is_away() -> None:
    """The main thread sleeps in one long call, as it does inside a gradient or an all-reduce."""
    script = """if True:
        import ctypes, os, signal, threading, time
        from dba3c.job.signals import StopSignal
        called = threading.Event()
        stop = StopSignal(lambda _number: called.set())
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        threading.Thread(target=lambda: print("called" if called.wait(2) else "late", flush=True)).start()
        libc, until = ctypes.CDLL(None), time.monotonic() + 3
        while time.monotonic() < until:
            libc.poll(None, 0, 3000)  # outside the interpreter, where Python's own handlers cannot run
        print(stop.requested())
    """
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["called", "True"]


def test_a_second_signal_leaves_at_once() -> None:
    script = """if True:
        import os, signal, time
        from dba3c.job.signals import StopSignal
        stop = StopSignal()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # a launcher may pass the same signal on twice
        assert stop.requested()
        time.sleep(1.1)
        os.kill(os.getpid(), signal.SIGINT)
        print("still here")
    """
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (128 + signal.SIGINT, "")
