"""How many loops a piece of work compiled, and how many it found in the cache.

One way of counting for all: a loop counts once for each types of arguments that Python calls it with, and what it calls
in turn is a part of it. `progress` counts so, and the table of counts (`loop_counts`). A loop that the helper process
has compiled in the meantime counts as compiled, although this process loads it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, NamedTuple

from isinglass.runtime.compilation.progress import Count


class Loops(NamedTuple):
    """Loops that were compiled, here or in the helper process, and loops that were in the cache before."""

    compiled: int
    loaded: int


class Counter:
    """Count the loops from now on."""

    def __init__(self) -> None:
        self.moment, self.compiled, self.ready = time.time(), Count.compiled, Count.ready

    def loops(self) -> Loops:
        """Return what was compiled and loaded since."""
        compiled, ready = Count.compiled - self.compiled, Count.ready - self.ready
        by_helper = min(_written_since(self.moment), ready - compiled) if compiled else 0
        return Loops(compiled + by_helper, ready - compiled - by_helper)


def _written_since(moment: float) -> int:
    """Return how many loops that this process has loaded were written to the cache after a moment."""
    from isinglass.runtime.compilation.jit import kernels

    return sum(written >= moment for kernel in kernels() for written in _times(kernel))


def _times(kernel: Any) -> list[float]:
    """Return when the loops that were loaded were written, unless they are always parts of others."""
    hits, found = kernel.stats.cache_hits, []
    if not hits or kernel.targetoptions.get("no_cpython_wrapper"):
        return []
    file, codegen = kernel._cache._cache_file, kernel.targetctx.codegen()
    index = file._load_index()
    for signature in hits:
        name = index.get(kernel._cache._index_key(signature, codegen))
        with suppress(OSError):  # a file that was removed meanwhile
            found += [] if name is None else [os.stat(file._data_path(name)).st_mtime]
    return found
