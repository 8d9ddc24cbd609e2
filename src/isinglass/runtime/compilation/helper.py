"""A second process that compiles what this one needs later.

Both write to one cache and take turns (`turns`). What is long is done here from its beginning, and in the helper, on
tiny data or in a rehearsal, from its end: they meet in the middle, and what remains is loaded.

The helper is started when the first loop is really compiled, so never if the cache has them all. Nothing depends on it:
without it, or if it fails, loops are compiled here. It ends with its work, or when the pipe to it is closed, which is
the case when this process ends, in whichever way. The environment variable ISINGLASS_HELPER=0 lets none start.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

import isinglass

SWITCH = "ISINGLASS_HELPER"
NICE = 5  # where processors are scarce, the program itself comes first
_PROGRAM = "from isinglass.runtime.compilation.helper import serve; serve()"
_offered: list[Helper] = []  # one at the most


@contextmanager
def helping(task: str, *arguments: object, stays: bool = False) -> Iterator[None]:
    """Let another process call ``"module:function"`` meanwhile, once a loop is compiled here.

    The arguments are pickled. With `stays`, a helper that was started may work on after the end of the block.
    """
    if _offered:
        yield
        return
    helper = Helper(task, arguments)
    _offered.append(helper)
    try:
        yield
    finally:
        _offered.remove(helper)
        if not stays:
            helper.stop()


def call_for_help() -> None:
    """Start the helper that is offered, if there is one."""
    for helper in _offered:
        helper.start()


def serve() -> None:
    """Do what the helper is started for, and end its process.

    The process ends at once: Python's own end would wait a second for the thread that reads, and then abort.
    """
    status = 1
    try:
        if hasattr(os, "nice"):
            os.nice(NICE)
        arguments = pickle.load(sys.stdin.buffer)
        Thread(target=_end_with_caller, daemon=True).start()
        module, function = sys.argv[1].split(":")
        getattr(import_module(module), function)(*arguments)
        status = 0
    finally:
        os._exit(status)


class Helper:
    """A process that calls a function of the library, which is given as ``"module:function"``."""

    def __init__(self, task: str, arguments: tuple[object, ...] = ()) -> None:
        self.task = task
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.started = False

    def start(self) -> None:
        """Start the process, unless that was tried before."""
        if self.started or not _possible():
            return
        self.started = True
        home = str(Path(isinglass.__file__).parents[1])
        paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
        nothing = subprocess.DEVNULL
        with suppress(Exception):  # no more processes, or arguments that cannot be pickled
            data = pickle.dumps(self.arguments)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, self.task],
                stdin=subprocess.PIPE,
                stdout=nothing,
                stderr=nothing,
                env={**os.environ, SWITCH: "0", "PYTHONPATH": paths},
            )
            atexit.register(self.stop)
            Thread(target=self._care, args=(self.process, data), daemon=True).start()
        self.arguments = ()

    @staticmethod
    def _care(process: subprocess.Popen[bytes], data: bytes) -> None:
        """Send the arguments; wait for the end, so that nothing of the process remains."""
        assert process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended, or was ended
            process.stdin.write(data)
            process.stdin.flush()
        _wait_for(process)

    def stop(self) -> None:
        """End the process, and wait for its end."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()  # whatever it writes, it writes whole or not at all
            _wait_for(process)
            atexit.unregister(self.stop)


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process, and close the pipe to it."""
    assert process.stdin is not None
    process.wait()
    with suppress(OSError, ValueError):  # it did not read all, or the pipe is closed
        process.stdin.close()


def _possible() -> bool:
    """Tell whether a helper may be started: from a plain Python, with a processor to spare."""
    plain = Path(sys.executable or "").stem.startswith("python") and not getattr(sys, "frozen", False)
    alone = multiprocessing.parent_process() is None  # those who share work among processes keep processors busy
    return os.environ.get(SWITCH) != "0" and plain and alone and processors() > 1


def _end_with_caller() -> None:
    sys.stdin.buffer.read()  # returns when the other end is closed
    os._exit(0)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
