"""The memory of messages if only log Z is computed: a message is freed once the message of its parent is computed.

Freed memory is reused, so that a sweep across a model needs little more memory than two messages (register allocation
by linear scan; Poletto and Sarkar 1999). Jobs that run in parallel have separate memory. Small messages, and those of
roots, are kept.
"""

from __future__ import annotations

from bisect import insort

import numpy as np

from isinglass.inference.junction_tree.layout import Layout
from isinglass.typing import IntArray

SMALL = 1024  # entries of a message that is not worth the trouble


def recycled(layout: Layout) -> tuple[IntArray, int]:
    """Return where each message starts in the vector of messages, and how long that is."""
    sizes, parent, schedule = layout.program.message_size, layout.tree.arrays.parent, layout.schedule
    kept = np.where((sizes < SMALL) | (parent < 0), sizes, 0)
    start = np.cumsum(kept) - kept
    end = int(kept.sum())
    job_of = np.empty(len(sizes), np.int64)
    job_of[schedule.sequence] = np.repeat(np.arange(len(schedule.jobs) - 1), np.diff(schedule.jobs))
    spaces = _Spaces(end)
    job = -1
    children: dict[int, list[int]] = {}
    for b in schedule.sequence[kept[schedule.sequence] == 0].tolist():
        if job_of[b] != job:
            job, spaces = int(job_of[b]), _Spaces(spaces.end)
        start[b] = spaces.take(int(sizes[b]))
        for c in children.pop(b, []):
            if job_of[c] == job:
                spaces.give(int(start[c]), int(sizes[c]))
        children.setdefault(int(parent[b]), []).append(b)
    return start, spaces.end


class _Spaces:
    """Free places from a first one on, as (start, size), sorted; they can be extended without end."""

    def __init__(self, first: int) -> None:
        self.end = first
        self.free: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Return the start of the smallest free place that is large enough."""
        able = [place for place in self.free if place[1] >= size]
        if not able:
            self.end += size
            return self.end - size
        start, room = min(able, key=lambda place: place[1])
        self.free.remove((start, room))
        if room > size:
            insort(self.free, (start + size, room - size))
        return start

    def give(self, start: int, size: int) -> None:
        """Take a place back, and join it with its neighbours."""
        for place in [p for p in self.free if p[0] + p[1] == start or start + size == p[0]]:
            self.free.remove(place)
            start, size = min(start, place[0]), size + place[1]
        insort(self.free, (start, size))
