"""Arrays for tapes, used again: new memory costs more than an iteration, because the system hands it out page by page.

A graph keeps a pool of the arrays that its last tapes gave back, at most LIMIT bytes of them.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph

LIMIT = 2**28


class Pool:
    """Free arrays by shape and dtype."""

    def __init__(self) -> None:
        self.free: defaultdict[Any, list[NDArray[Any]]] = defaultdict(list)
        self.bytes = 0

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array with anything in it."""
        try:
            found = self.free[shape, dtype.str].pop()
        except IndexError:
            return np.empty(shape, dtype)
        self.bytes -= found.nbytes
        return found

    def give_back_with(self, owner: object, array: NDArray[Any]) -> None:
        """Take the array back when its owner, the only one who uses it by then, is gone."""
        weakref.finalize(owner, self._give, array).atexit = False

    def _give(self, array: NDArray[Any]) -> None:
        if self.bytes + array.nbytes <= LIMIT:
            self.free[array.shape, array.dtype.str].append(array)
            self.bytes += array.nbytes


def pool_of(graph: FactorGraph) -> Pool:
    """Return the pool of a graph."""
    return graph.cached("pool", Pool)
