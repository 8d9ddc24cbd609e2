"""Which elimination order exact inference takes: the caller's, the first one found, or a better one if it does not fit.

The first search takes no longer than inference itself would. Where its order does not fit into memory, but another one
might, a longer search is made before the model is refused. It is announced, because it takes some seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.errors import SearchWarning
from isinglass.graph.elimination.bucket_tree import BucketTree, bucket_tree
from isinglass.graph.elimination.cost import exact_bytes
from isinglass.graph.elimination.order import WORTH_RESTARTS, EliminationOrder, Restarts, elimination_order
from isinglass.inference.algorithm import Cost, Progress
from isinglass.potentials import Potentials
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import IntArray
from isinglass.validation import bytes_text

REMEDY = (
    "raise memory_limit (--memory), search longer for an elimination order (restarts=1000, --restarts 1000), observe "
    "more variables"
)
SAVES = 1000  # a longer search does not save more memory than this factor


class Wishes(NamedTuple):
    """What the caller asks for: a limit of bytes, restarts of the search or the order itself, and threads."""

    memory_limit: str | int | float | None = None
    restarts: Restarts = None
    order: Sequence[int] | IntArray | None = None
    threads: int = 1


def order_for(potentials: Potentials, wishes: Wishes, progress: Progress | None = None) -> EliminationOrder:
    """Return the order for these potentials' evidence."""
    graph, clamped = potentials.graph, tuple(potentials.evidence)
    order = elimination_order(graph, clamped=clamped, restarts=wishes.restarts, order=wishes.order)
    needed, limit = bytes_of(potentials, order), memory_limit_bytes(wishes.memory_limit)
    chosen = wishes.restarts is not None or wishes.order is not None
    if chosen or order.entries < WORTH_RESTARTS or not limit < needed <= SAVES * limit:
        return order
    return graph.cached(("longer search", clamped), lambda: _longer(potentials, order, limit, progress))


def _longer(potentials: Potentials, order: EliminationOrder, limit: int, progress: Progress | None) -> EliminationOrder:
    """Announce a longer search, and make it; return the order that takes least memory."""
    needed = bytes_text(bytes_of(potentials, order))
    text = f"exact inference would need {needed}, more than {bytes_text(limit)}, in the first elimination order found"
    warnings.warn(f"{text}: now searching longer, for some seconds", SearchWarning, stacklevel=2)
    if progress is not None:
        progress("searching longer for an elimination order", 0.0)
    other = elimination_order(potentials.graph, clamped=tuple(potentials.evidence), restarts="long")
    return min(order, other, key=lambda found: bytes_of(potentials, found))


def bytes_of(potentials: Potentials, order: EliminationOrder) -> float:
    """Return the bytes that exact inference takes with an order; infinite where that is not known."""
    return exact_bytes(potentials.graph, order, potentials.groups) if order.complete else np.inf


def cost_of(potentials: Potentials, order: EliminationOrder) -> Cost:
    """Price an order."""
    more = "" if order.complete else "more than "
    needed = bytes_text(exact_bytes(potentials.graph, order, potentials.groups))
    text = f"width {more}{order.width}, {more}{needed}, {more}{order.entries:.3g} table entries"
    return Cost(bytes_of(potentials, order), order.entries, text)


def affordable_tree(potentials: Potentials, wishes: Wishes, progress: Progress | None) -> BucketTree:
    """Return the bucket tree of the order; refuse if it does not fit."""
    order = order_for(potentials, wishes, progress)
    more = "" if order.complete else "more than "
    what = (
        f"exact inference needs {more}{bytes_text(exact_bytes(potentials.graph, order, potentials.groups))} "
        f"(width {more}{order.width}, largest table 2^{order.log2_largest:.1f} entries)"
    )
    remedy = f"{REMEDY}, or use an approximate algorithm"
    require_memory(bytes_of(potentials, order), memory_limit_bytes(wishes.memory_limit), what, remedy)
    return bucket_tree(potentials.graph, order)
