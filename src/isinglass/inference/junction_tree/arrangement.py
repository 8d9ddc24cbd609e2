"""The memory layout of large buckets: which messages are large, and the order of the axes.

Factors and small messages of a bucket are multiplied first, into a local table. A message is large if including it
would make the local table more than a small part of the bucket. The axes of a bucket with large messages are ordered as

    common | missing | run | v

(`isinglass.kernels.numba.junction_tree.large`). The inner loops go along the run: axes that every large message has and
the local table does not have. They should be the last axes of the messages that are read, too. So a bucket keeps the
run of its largest message if it can. Otherwise it takes the axes that stay out of local tables for longest on the path
to the root, as in the cache replacement of Belady (1966).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isinglass.graph.elimination.bucket_tree import BucketTree, TreeArrays
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import IntArray, Mask

SMALL = 2**11  # entries of all buckets up to which all messages are local
LOCAL = 2**9  # entries of a bucket up to which its messages are, in other trees
SMALL_SHARE = 16  # of a large bucket, the local table is at most this fraction, if the factors allow it
LEAST_RUN, RUN = 16, 128  # entries of a run: at least, and wanted
AHEAD = 64  # buckets on the way to the root that are looked at


@dataclass(frozen=True, eq=False)
class Arrangement:
    """The tree with its axes in sequence, the large messages, and the first missing and run axis of large buckets."""

    arrays: TreeArrays
    is_large: Mask  # (buckets,) their messages
    large: Mask  # (buckets,) those with a large message
    missing_axis: IntArray
    run_axis: IntArray


def arranged(tree: BucketTree) -> Arrangement:
    """Arrange the axes of all buckets."""
    n = tree.n_buckets
    if not n or tree.work.max() <= SMALL:
        return Arrangement(tree.arrays, *np.zeros((2, n), bool), *np.zeros((2, n), np.int64))
    plan = _Plan(tree, tree.arrays.axis.copy())
    for b in np.flatnonzero(tree.work > LOCAL).tolist():
        plan.arrange(b)
    arrays = tree.arrays._replace(axis=plan.axis)
    return Arrangement(arrays, plan.is_large, plan.large, plan.missing_axis, plan.run_axis)


class _Plan:
    """An arrangement in the making; buckets are arranged from the leaves to the roots."""

    def __init__(self, tree: BucketTree, axis: IntArray) -> None:
        self.tree, self.arrays, self.axis = tree, tree.arrays, axis
        self.is_large, self.large = np.zeros((2, tree.n_buckets), bool)
        self.missing_axis, self.run_axis = np.zeros((2, tree.n_buckets), np.int64)

    @cached_property
    def cards(self) -> list[int]:
        return [int(card) for card in self.arrays.cards]

    def scope(self, b: int) -> list[int]:
        """Axes of a bucket; its own variable is the last."""
        found: list[int] = self.axis[self.arrays.first_axis[b] : self.arrays.first_axis[b + 1]].tolist()
        return found

    def active(self, b: int) -> set[int]:
        """Free variables of a bucket's factors, and its own."""
        arrays = self.arrays
        found = {int(self.axis[arrays.first_axis[b + 1] - 1])}
        for a in arrays.factor[arrays.first_factor[b] : arrays.first_factor[b + 1]].tolist():
            found.update(arrays.slot_variable[arrays.first_slot[a] : arrays.first_slot[a + 1]].tolist())
        return found

    def entries(self, variables: set[int] | list[int]) -> int:
        return math.prod(self.cards[v] for v in variables)

    def arrange(self, b: int) -> None:
        """Choose the large messages of a bucket, and the sequence of its axes."""
        *separator, own = self.scope(b)
        local = self.active(b) & {*separator, own}
        large = []
        for c in self.arrays.child[self.arrays.first_child[b] : self.arrays.first_child[b + 1]].tolist():
            scope = self.scope(c)[:-1]
            grown = local.union(scope)
            if len(grown) > len(local) and self.entries(grown) * SMALL_SHARE > self.tree.work[b]:
                large.append((len(scope), c, scope))
            else:
                local = grown
        if not large:
            return
        common = set(separator).intersection(*(scope for _, _, scope in large))
        first = max(large)[2]  # the sequence of the axes of the largest message
        run = self.run_of(b, [v for v in first if v in common and v not in local], first)
        if self.entries(run) < LEAST_RUN:
            return
        outer = [v for v in first if v in common and v not in run]
        missing = [v for v in separator if v not in common]
        start = self.arrays.first_axis[b]
        self.axis[start : start + len(separator)] = outer + missing + run
        self.is_large[[c for _, c, _ in large]] = True
        self.large[b] = True
        self.missing_axis[b], self.run_axis[b] = len(outer), len(outer) + len(missing)

    def run_of(self, b: int, able: list[int], message: list[int]) -> list[int]:
        """Choose the run among the axes that are able: the last of the message, or those that last longest."""
        kept = self.until_full(message[::-1], able)
        if self.entries(kept) >= RUN // 2:
            return kept[::-1]
        chosen = self.until_full(self.by_need(b, able), able)
        return [v for v in able if v in chosen]

    def until_full(self, candidates: list[int], able: list[int]) -> list[int]:
        """Take candidates until one is not able to be in the run, or the run is long enough."""
        taken: list[int] = []
        for v in candidates:
            if v not in able or self.entries(taken) >= RUN:
                break
            taken.append(v)
        return taken

    def by_need(self, b: int, able: list[int]) -> list[int]:
        """Sort axes by when they are next in a local table, the last one first."""
        waiting, soon = list(able), []
        for _ in range(AHEAD):
            b = int(self.arrays.parent[b])
            if b < 0 or not waiting:
                break
            active = self.active(b)
            soon += [v for v in waiting if v in active]
            waiting = [v for v in waiting if v not in active]
        return waiting + soon[::-1]
