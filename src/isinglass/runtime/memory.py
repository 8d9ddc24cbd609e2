"""The available memory, and the refusal of work that does not fit."""

from __future__ import annotations

import os
from pathlib import Path

from isinglass.errors import MemoryLimitError
from isinglass.validation import bytes_text, memory_size


def available_memory() -> int:
    """Return the bytes that can be allocated now without swapping, within the limits of a container."""
    candidates = [_meminfo(), _cgroup(Path("/sys/fs/cgroup"))]
    known = [c for c in candidates if c is not None]
    return min(known) if known else _physical()


def memory_limit_bytes(limit: str | int | float | None) -> int:
    """Return the limit in bytes; by default half of the available memory."""
    return available_memory() // 2 if limit is None else memory_size(limit)


def require_memory(needed: float, limit: int, what: str, remedy: str) -> None:
    """Raise MemoryLimitError, before any work, if the work does not fit in memory."""
    if needed > limit:
        raise MemoryLimitError(f"{what}, but the memory limit is {bytes_text(limit)}; {remedy}")


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _cgroup(folder: Path) -> int | None:
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return None if limit == "max" else max(int(limit) - used, 0)
    except (OSError, ValueError):
        return None


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30
