"""A second process that compiles what this one needs later.

Both write to one cache and take turns (`turns`). What is long is run here from its beginning, and in the helper, on
tiny data, from its end: they meet in the middle, and what remains is loaded.

The helper is started when the first loop is really compiled, so never if the cache has them all. Nothing depends on it:
without it, or if it fails, loops are compiled here. It ends with its work, or when the pipe to it is closed, which is
the case when this process ends, in whichever way. The environment variable ISINGLASS_HELPER=0 lets none start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

import isinglass

SWITCH = "ISINGLASS_HELPER"
_PROGRAM = "from isinglass.runtime.helper import serve; serve()"
_waiting: list[Helper] = []


@contextmanager
def helping(task: str) -> Iterator[None]:
    """Let another process call ``"module:function"`` meanwhile, once a loop is compiled here."""
    if _waiting or os.environ.get(SWITCH) == "0" or _processors() < 2 or not sys.executable:
        yield
        return
    helper = Helper(task)
    _waiting.append(helper)
    try:
        yield
    finally:
        _waiting.remove(helper)
        helper.stop()


def call_for_help() -> None:
    """Start the helper that waits, if there is one."""
    for helper in _waiting:
        helper.start()


def serve() -> None:
    """Do what the helper is started for; to be called in its process."""
    Thread(target=_end_with_caller, daemon=True).start()
    module, function = sys.argv[1].split(":")
    getattr(import_module(module), function)()


class Helper:
    """A process that calls a function of the library, which is given as ``"module:function"``."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.process: subprocess.Popen[bytes] | None = None
        self.started = False

    def start(self) -> None:
        """Start the process, unless that was tried before."""
        if self.started:
            return
        self.started = True
        home = str(Path(isinglass.__file__).parents[1])
        paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
        nothing = subprocess.DEVNULL
        with suppress(OSError):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, self.task],
                stdin=subprocess.PIPE,
                stdout=nothing,
                stderr=nothing,
                env={**os.environ, SWITCH: "0", "PYTHONPATH": paths},
            )

    def stop(self) -> None:
        """End the process, and wait for its end."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def _end_with_caller() -> None:
    sys.stdin.buffer.read()  # returns when the other end is closed
    os._exit(0)


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
