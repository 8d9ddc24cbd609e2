"""Processes that share a cache of compiled loops take turns: one compiles a loop, others wait for it and load it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows; there two processes may compile the same loop
    fcntl = None

LOCK = "compiling.lock"  # in a folder of the cache; every loop has a byte of its own, which is locked
PAUSE = 0.02


@contextmanager
def turn(folder: str | os.PathLike[str], name: str, most: float = 60.0) -> Iterator[None]:
    """Let no other process be here with the same name and folder.

    It waits `most` seconds at the most, as the other process may have been stopped: then both do the same work, to the
    same result. Where no lock can be had, nobody waits. A process has one turn at a time.
    """
    file = _open(folder)
    if file is None:
        yield
        return
    try:
        _wait(file, _byte(name), most)
        yield
    finally:
        os.close(file)  # and with it the lock


def _open(folder: str | os.PathLike[str]) -> int | None:
    """Open the file of locks; None where there is none, because the folder cannot be written or is not there yet."""
    try:
        return None if fcntl is None else os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _byte(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:3])


def _wait(file: int, byte: int, most: float) -> None:
    end = time.monotonic() + most
    while time.monotonic() < end:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # another process has it
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return
