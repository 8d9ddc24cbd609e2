"""Files that are replaced in one step, by a writer that may be killed at any moment.

New contents go to a temporary file beside the old one, `.NAME.0123456789abcdef.isg-tmp`, which then takes its place.
Its writer holds a lock on it, which the operating system takes back when the process ends, in whatever way. So a
temporary file without a lock was left behind by a process that was killed, and the next writer of the same file removes
it. Two writers never harm each other:

- a file that is locked is left alone;
- one that is new and not locked yet may be taken for one that was left; its writer then does not get the lock, or finds
  the file gone, and begins with another name.

Where there are no locks (some network file systems, Windows) nothing is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ENDING = ".isg-tmp"
_SHOWN = 40  # characters of the name: the longest allowed has 255 bytes


def replace_file(target: str, data: bytes | memoryview) -> None:
    """Write a file, all or nothing; what killed writers of it left behind is removed."""
    remove_left(target)
    file, temporary = _created(target)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if os.path.exists(target):
                shutil.copymode(target, temporary)
            if fcntl is not None:  # before the lock is given back
                os.replace(temporary, target)
        if fcntl is None:  # Windows does not rename open files
            os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(temporary)
        raise


def remove_left(target: str) -> None:
    """Remove temporary files of a target that no living process holds."""
    with suppress(OSError):  # a folder that cannot be listed
        for name in list(_temporaries(target)):
            with suppress(OSError):  # gone already, or of another user
                _remove_if_left(name)


def _temporaries(target: str) -> Iterator[str]:
    """Yield the temporary files of a target."""
    folder, base = os.path.split(target)
    pattern = re.compile(re.escape(f".{base[:_SHOWN]}.") + "[0-9a-f]{16}" + re.escape(ENDING))
    with os.scandir(folder or ".") as entries:
        yield from (e.path for e in entries if pattern.fullmatch(e.name) and e.is_file(follow_symlinks=False))


def _remove_if_left(name: str) -> None:
    with open(name, "rb") as file:
        if _lock(file):
            os.remove(name)


def _created(target: str) -> tuple[BinaryIO, str]:
    """Open a new temporary file for a target, and lock it."""
    folder, base = os.path.split(target)
    while True:
        name = os.path.join(folder, f".{base[:_SHOWN]}.{secrets.token_hex(8)}{ENDING}")
        file = open(name, "xb")  # noqa: SIM115 (the caller closes it)
        if _lock(file) is not False and _is_there(file, name):
            return file, name
        file.close()  # another writer took it for one that was left, and removes it


def _lock(file: BinaryIO) -> bool | None:
    """Lock a file until it is closed; False: another process has it; None: there are no locks here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_there(file: BinaryIO, name: str) -> bool:
    """Tell whether the name still stands for the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except FileNotFoundError:
        return False
